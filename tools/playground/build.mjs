// Writes app.js and app.json of the playground's page from the modules in src/, and those of js/client that it shares
// with the pages of others. Run `npm install --no-package-lock && npm run build` in this folder (or in a copy of
// tools/playground and js/client, with the folder to write to as argument). None of the packages ends up in the page.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import babel from "@babel/core";
import { build } from "esbuild";
import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../../agents_tools/playground/static"));
const readText = (...parts) => readFileSync(join(...parts), "utf8");
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

/** Turns each html`…` into calls of `h`, so that no template is read in the browser. */
const templates = {
  name: "templates",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]src[\\/]\w+\.js$/ }, ({ path }) => {
      if (path.includes("node_modules")) return undefined;
      const htm = ["htm", { import: { module: "./view.js", export: "h" }, useBuiltIns: true }];
      const options = { configFile: false, babelrc: false, plugins: [htm] };
      return { contents: babel.transformSync(readText(path), options).code, loader: "js" };
    }),
};

const { devDependencies } = JSON.parse(readText(here, "package.json"));
const sources = readdirSync(join(here, "src"))
  .filter((name) => name.endsWith(".js"))
  .sort();

const { outputFiles, metafile } = await build({
  metafile: true,
  entryPoints: [join(here, "src/main.js")],
  bundle: true,
  format: "esm",
  target: "es2023",
  legalComments: "none",
  plugins: [templates],
  write: false,
});
const root = resolve(here, "../..");
const shared = Object.keys(metafile.inputs)
  .map((path) => resolve(here, path))
  .filter((path) => path.startsWith(join(root, "js")))
  .sort();
const small = await minify(outputFiles[0].text, {
  module: true,
  ecma: 2020,
  compress: { passes: 4, unsafe_arrows: true, unsafe_methods: true, keep_fargs: false },
  format: { comments: false },
});
const banner =
  "/*! The playground of agents-tools (MIT). Built by tools/playground from its src/; see app.json. */\n";
const code = Buffer.from(`${banner}${small.code}\n`);
const facts = {
  file: "app.js",
  license: "MIT",
  sha256: sha256(code),
  sources: Object.fromEntries(sources.map((name) => [name, sha256(readText(here, "src", name))])),
  shared: Object.fromEntries(shared.map((path) => [path.slice(root.length + 1), sha256(readText(path))])),
  others_code: [],
  built_with: devDependencies,
};

// The new files replace the old ones at once, so that a page that is being served is never half of each.
const put = (name, data) => {
  writeFileSync(join(target, `${name}.new`), data);
  renameSync(join(target, `${name}.new`), join(target, name));
};
put("app.js", code);
put("app.json", `${JSON.stringify(facts, null, 2)}\n`);
console.log(`app.js: ${code.length} bytes, ${gzipSync(code, { level: 9 }).length} with gzip -9`);
