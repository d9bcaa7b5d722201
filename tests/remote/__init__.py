"""Workers as real processes: killed, hung, restarted, cut off, behind a load balancer, far away."""
