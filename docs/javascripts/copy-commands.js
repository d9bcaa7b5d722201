// In `console` blocks, the copy button copies the commands: no prompts and no output.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-clipboard-target]");
    const code = button && document.querySelector(button.getAttribute("data-clipboard-target"));
    if (!code || !code.closest(".language-console")) return;
    const commands = [];
    let continues = false;
    for (const line of code.textContent.split("\n")) {
      if (line.startsWith("$ ") || continues) {
        commands.push(continues ? line : line.slice(2));
        continues = line.endsWith("\\");
      }
    }
    if (commands.length) button.setAttribute("data-clipboard-text", commands.join("\n"));
  },
  true, // before the handler of the theme, which reads the attribute
);
