// Writes vendor.js, vendor.json and LICENSES.txt of the playground from the packages that
// package.json names. Run `npm install --no-package-lock && npm run build` in this folder (or in a
// copy of it, with the folder to write to as argument).
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../../agents_tools/playground/static"));
const names = Object.keys(JSON.parse(readFileSync(join(here, "package.json"), "utf8")).dependencies);

const packages = names.map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return { name, version, license, folder };
});
const listed = packages.map(({ name, version, license }) => `${name} ${version} (${license})`);
const banner = `/*! ${listed.join(", ")}; texts in LICENSES.txt. Built by tools/playground-vendor. */`;

const { outputFiles } = await build({
  entryPoints: [join(here, "vendor-entry.js")],
  bundle: true,
  format: "esm",
  minify: true,
  target: "es2022",
  legalComments: "none",
  banner: { js: banner },
  write: false,
});
const code = outputFiles[0].contents;
const facts = {
  file: "vendor.js",
  sha256: createHash("sha256").update(code).digest("hex"),
  packages: packages.map(({ name, version, license }) => ({ name, version, license })),
};
const licences = packages.map(
  ({ name, version, folder }) =>
    `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`,
);

writeFileSync(join(target, "vendor.js"), code);
writeFileSync(join(target, "vendor.json"), `${JSON.stringify(facts, null, 2)}\n`);
writeFileSync(join(target, "LICENSES.txt"), licences.join(`\n${"-".repeat(72)}\n\n`));
