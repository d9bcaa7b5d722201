"""The tools that come with the library; each in a module of its own, nothing imported before."""
