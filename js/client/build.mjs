// Writes the package for web pages to agents_tools/ui/client from the modules in src/. Run
// `npm install --no-package-lock && npm run build` in this folder (or in a copy of it, with the folder to write to and
// the version as arguments). standalone.js contains Preact; the other files contain no code of others.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../../agents_tools/ui/client"));
const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const { devDependencies } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const sources = readdirSync(join(here, "src")).sort();

const MODULES = {
  client: { external: [] },
  react: { external: ["react", "./client.js"] },
  "ai-sdk": { external: ["react", "./client.js", "./react.js"] },
  "ag-ui": { external: ["@ag-ui/client"] },
  copilotkit: { external: ["react", "./client.js", "./react.js"] },
  standalone: { external: ["./client.js"], alias: { react: join(here, "src/preact.ts") } },
};
const OTHERS = { standalone: ` Contains Preact ${devDependencies.preact} (MIT, Jason Miller).` };

/** Bundles one module. */
async function bundle(name) {
  const { outputFiles } = await build({
    entryPoints: [join(here, `src/${name}.ts`)],
    bundle: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    write: false,
    ...MODULES[name],
  });
  const small = await minify(outputFiles[0].text, { module: true, ecma: 2020, compress: { passes: 3 } });
  return `/*! @agents-tools/client (MIT). Built by js/client from its src/.${OTHERS[name] ?? ""} */\n${small.code}\n`;
}

// The new files replace the old ones at once, so that a page that is being served is never half of each.
const written = {};
function put(name, data) {
  writeFileSync(join(target, `${name}.new`), data);
  renameSync(join(target, `${name}.new`), join(target, name));
  written[name] = sha256(data);
}

mkdirSync(target, { recursive: true });
for (const name of readdirSync(target)) if (!name.endsWith(".py")) rmSync(join(target, name));
for (const name of Object.keys(MODULES)) {
  const code = await bundle(name);
  put(`${name}.js`, code);
  console.log(`${name}.js: ${code.length} bytes, ${gzipSync(code, { level: 9 }).length} with gzip -9`);
}
put("style.css", readFileSync(join(here, "src/style.css")));

const types = mkdtempSync(join(here, ".types-"));
try {
  const options = ["--declaration", "--emitDeclarationOnly", "--stripInternal", "--outDir", types];
  execFileSync(join(here, "node_modules/.bin/tsc"), options, { cwd: here, stdio: "inherit" });
  for (const name of readdirSync(types).filter((one) => one !== "preact.d.ts")) put(name, readFileSync(join(types, name)));
} finally {
  rmSync(types, { recursive: true });
}

const entry = (name) => ({ types: `./${name}.d.ts`, default: `./${name}.js` });
const facts = {
  name: "@agents-tools/client",
  version: process.argv[3] ?? "0.0.0",
  description: "Start, follow, show and control runs of agents-tools in a web page.",
  license: "MIT",
  type: "module",
  sideEffects: false,
  exports: {
    ".": entry("client"),
    "./react": entry("react"),
    "./ai-sdk": entry("ai-sdk"),
    "./ag-ui": entry("ag-ui"),
    "./copilotkit": entry("copilotkit"),
    "./standalone": entry("standalone"),
    "./style.css": "./style.css",
  },
  peerDependencies: { "@ag-ui/client": ">=0.0.59", react: ">=18" },
  peerDependenciesMeta: { "@ag-ui/client": { optional: true }, react: { optional: true } },
  built: {
    files: written,
    sources: Object.fromEntries(sources.map((name) => [name, sha256(readFileSync(join(here, "src", name)))])),
    with: devDependencies,
  },
};
put("package.json", `${JSON.stringify(facts, null, 2)}\n`);
