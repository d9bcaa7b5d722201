// Reads JSON schemas: what kind of field one is, what it starts with and which variant a value is.
import { brief, isObject, same } from "./json.js";

/**
 * @typedef {object} Shape
 * @property {string} kind const, enum, boolean, number, string, object, dict, array, tuple, union or json.
 * @property {boolean} nullable Whether null is a value of it, too.
 * @property {object} schema The schema with its references followed.
 * @property {object[]} [variants] Of a union: the schemas to choose from.
 */

const PLAIN = { string: "string", number: "number", integer: "number", boolean: "boolean" };

/** Follows `$ref` and merges `allOf`. @returns {object} A schema that says itself what it is. */
export function resolve(schema, root, depth = 0) {
  if (!isObject(schema) || depth > 16) return {};
  const { $ref, allOf, ...own } = schema;
  if ($ref) return resolve({ ...resolve(pointed($ref, root), root, depth + 1), ...own }, root, depth + 1);
  if (!allOf) return schema;
  return allOf.map((part) => resolve(part, root, depth + 1)).reduce(merge, own);
}

function pointed($ref, root) {
  const steps = $ref
    .split("/")
    .slice(1)
    .map((step) => decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~"));
  return steps.reduce((at, step) => at?.[step], root);
}

const merge = (one, other) => ({
  ...other,
  ...one,
  ...((one.properties || other.properties) && { properties: { ...other.properties, ...one.properties } }),
  ...((one.required || other.required) && {
    required: [...(other.required || []), ...(one.required || [])],
  }),
});

/** @returns {Shape} */
export function shapeOf(schema, root) {
  const own = resolve(schema, root);
  const listed = own.anyOf || own.oneOf;
  if (listed) return unionOf(own, listed, root);
  if (Array.isArray(own.type)) return typesOf(own, root);
  if ("const" in own) return { kind: "const", nullable: false, schema: own };
  if (own.enum) return { kind: "enum", nullable: false, schema: own };
  return { kind: kindOf(own), nullable: false, schema: own };
}

function kindOf(own) {
  if (PLAIN[own.type]) return PLAIN[own.type];
  if (own.type === "object" || own.properties) return objectKind(own);
  if (own.prefixItems) return "tuple";
  return own.type === "array" && own.items !== false ? "array" : "json";
}

function objectKind(own) {
  if (own.patternProperties) return "json";
  if (own.properties && Object.keys(own.properties).length) return "object";
  return isObject(own.additionalProperties) ? "dict" : own.additionalProperties === false ? "object" : "json";
}

const isNull = (schema) => schema.type === "null" || ("const" in schema && schema.const === null);

function unionOf(own, listed, root) {
  const { anyOf, oneOf, discriminator, ...rest } = own;
  const variants = listed.filter((one) => !isNull(resolve(one, root)));
  const nullable = variants.length < listed.length;
  if (variants.length !== 1)
    return { kind: variants.length ? "union" : "json", nullable, schema: own, variants };
  const one = resolve(variants[0], root);
  return {
    ...shapeOf(merge(rest, { ...one, ...(rest.description && { description: rest.description }) }), root),
    nullable,
  };
}

function typesOf(own, root) {
  const types = own.type.filter((type) => type !== "null");
  const nullable = types.length < own.type.length;
  if (types.length === 1 || own.enum) return { ...shapeOf({ ...own, type: types[0] }, root), nullable };
  return {
    kind: "union",
    nullable,
    schema: own,
    variants: types.map((type) => ({ ...own, type, description: undefined })),
  };
}

/** What a field holds that must hold something: a new row, a chosen variant. */
export function blank(schema, root, depth = 0) {
  const { kind, nullable, schema: own, variants } = shapeOf(schema, root);
  if ("default" in own) return own.default;
  if (nullable || depth > 6) return null;
  if (kind === "const") return own.const;
  if (kind === "enum") return own.enum[0];
  if (kind === "boolean") return false;
  if (kind === "number") return own.minimum ?? 0;
  if (kind === "string") return "";
  if (kind === "array")
    return Array.from({ length: own.minItems ?? 0 }, () => blank(own.items ?? {}, root, depth + 1));
  if (kind === "tuple") return own.prefixItems.map((item) => blank(item, root, depth + 1));
  if (kind === "union") return blank(variants[0], root, depth + 1);
  return kind === "json" && own.type !== "object" ? null : initial(own, root, depth + 1);
}

/** What an object starts with: constants, and whatever must be there but has no empty state. */
export function initial(schema, root, depth = 0) {
  const own = resolve(schema, root);
  const value = {};
  for (const key of own.required ?? []) {
    const { kind, nullable, schema: part } = shapeOf(own.properties?.[key] ?? {}, root);
    if ("default" in part || nullable || depth > 6) continue;
    if (kind === "const") value[key] = part.const;
    if (kind === "boolean") value[key] = false;
    if (["object", "dict", "array", "tuple", "union"].includes(kind))
      value[key] = blank(part, root, depth + 1);
  }
  return value;
}

/** Which variant of a union a value is; 0 when none fits. */
export function variantOf(value, variants, root) {
  const points = variants.map((one) => fit(value, one, root));
  return points.indexOf(Math.max(...points));
}

/** How well a value fits: 0 is not at all; known keys and constants count. */
function fit(value, schema, root, depth = 0) {
  const { kind, nullable, schema: own, variants } = shapeOf(schema, root);
  if (value === null) return nullable ? 2 : 0;
  if (kind === "const") return same(value, own.const) ? 4 : 0;
  if (kind === "enum") return own.enum.some((one) => same(one, value)) ? 3 : 0;
  if (kind === "union")
    return depth > 6 ? 1 : Math.max(...variants.map((one) => fit(value, one, root, depth + 1)));
  if (kind === "number")
    return isNumber(value) ? (own.type === "integer" && Number.isInteger(value) ? 3 : 2) : 0;
  if (kind === "boolean" || kind === "string") return typeof value === kind ? 2 : 0;
  if (kind === "array" || kind === "tuple") return Array.isArray(value) ? 2 : 0;
  if (kind === "json") return own.type === "object" && !isObject(value) ? 0 : 1;
  return isObject(value) ? objectFit(value, own, root, depth) : 0;
}

function objectFit(value, own, root, depth) {
  let points = 2;
  for (const [key, part] of Object.entries(own.properties ?? {})) {
    const fixed = ["const", "enum"].includes(shapeOf(part, root).kind);
    if (key in value) points += depth > 3 ? 1 : fit(value[key], part, root, depth + 1) || (fixed ? -20 : -1);
  }
  return Math.max(points, 0.5);
}

const isNumber = (value) =>
  typeof value === "number" || (value !== null && typeof value === "object" && "rawJSON" in value);

/** The name of a variant: its title, its tag or its type. */
export function variantName(schema, root) {
  const { kind, schema: own } = shapeOf(schema, root);
  const tag = Object.values(own.properties ?? {})
    .map((part) => resolve(part, root))
    .find((part) => "const" in part);
  if (kind === "const") return brief(own.const);
  return own.title ?? (tag ? String(tag.const) : typeName(schema, root));
}

/** The type in a word or two. */
export function typeName(schema, root) {
  const { kind, nullable, schema: own } = shapeOf(schema, root);
  const names = {
    const: "constant",
    enum: "choice",
    boolean: "true or false",
    dict: "map",
    tuple: "tuple",
    union: "one of several",
    array: `list of ${kind === "array" ? typeName(own.items ?? {}, root) : ""}`,
    json: own.type === "object" ? "object" : "any JSON",
    number: own.type,
    string: isBytes(own) ? "bytes" : (own.format ?? "string"),
    object: "object",
  };
  return names[kind] + (nullable ? " or null" : "");
}

const BASE64 = new Set(["base64", "base64url", "byte"]);

/** Whether a string stands for bytes, and then whether they are written as base64. */
export const isBase64 = (own) => BASE64.has(own.contentEncoding) || BASE64.has(own.format);
export const isBytes = (own) => own.format === "binary" || isBase64(own);

/** What a value must keep to, in words. */
export function limits(own) {
  const {
    minimum: low,
    maximum: high,
    exclusiveMinimum: over,
    exclusiveMaximum: under,
    multipleOf,
    pattern,
  } = own;
  const range = (least, most, unit) =>
    least !== undefined && most !== undefined
      ? `${least} to ${most}${unit}`
      : least !== undefined
        ? `at least ${least}${unit}`
        : most !== undefined
          ? `at most ${most}${unit}`
          : "";
  return [
    range(low, high, ""),
    over !== undefined && `more than ${over}`,
    under !== undefined && `less than ${under}`,
    multipleOf !== undefined && `a multiple of ${multipleOf}`,
    range(own.minLength, own.maxLength, " characters"),
    range(own.minItems, own.maxItems, " entries"),
    own.uniqueItems && "unique entries",
    pattern && `matches ${pattern}`,
  ]
    .filter(Boolean)
    .join(", ");
}
