//! Validates JSON against `docs/reference/json.schema.json`.
//!
//! It supports the part of JSON Schema (draft 2020-12) that the file uses; any other keyword is an error. It
//! is stricter than the standard in one way: a field that the schema does not describe is an error. So the
//! schema cannot fall behind.

use super::root;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The schema of the command's JSON.
#[derive(Debug)]
pub struct Schema(Value);

impl Schema {
    /// The schema file.
    pub fn read() -> Schema {
        let text = std::fs::read_to_string(root().join("docs/reference/json.schema.json"));
        Schema(serde_json::from_str(&text.expect("the schema")).expect("JSON"))
    }

    /// A schema with this text.
    pub fn new(schema: Value) -> Schema {
        Schema(schema)
    }

    /// The schema as JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// The errors in a value that must match `reference`: `#` is the result of a check, `#/$defs/NAME`
    /// another object.
    pub fn errors(&self, reference: &str, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.complete(self.resolve(reference), value, "", &mut errors);
        errors
    }

    /// Asserts that a value is valid.
    #[track_caller]
    pub fn assert_valid(&self, reference: &str, value: &Value) {
        let errors = self.errors(reference, value);
        assert!(errors.is_empty(), "not a {reference} of the schema: {errors:#?}\n{value:#}");
    }

    fn resolve(&self, reference: &str) -> &Value {
        let pointer = reference.strip_prefix('#').expect("a reference inside of the schema");
        self.0.pointer(pointer).unwrap_or_else(|| panic!("the schema has no {reference}"))
    }

    /// Checks a value, and that the schema describes all of its fields.
    fn complete(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        let described = self.check(schema, value, at, errors);
        let fields = value.as_object().into_iter().flat_map(Map::keys);
        errors.extend(
            fields
                .filter(|name| !described.contains(*name))
                .map(|name| format!("{at}/{name}: not described")),
        );
    }

    /// Checks a value. Returns the fields that the schema describes.
    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) -> BTreeSet<String> {
        let mut described = BTreeSet::new();
        for (keyword, argument) in schema.as_object().expect("a schema is an object") {
            let mut expect = |is_so: bool| {
                if !is_so {
                    errors.push(format!("{at}: {value} is not {keyword} {argument}"));
                }
            };
            match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" => {}
                "type" => expect(match argument {
                    Value::Array(types) => types.iter().any(|name| is_of(value, name)),
                    name => is_of(value, name),
                }),
                "enum" => expect(argument.as_array().expect("a list").contains(value)),
                "const" => expect(argument == value),
                "minimum" => expect(value.as_f64().is_none_or(|n| n >= argument.as_f64().expect("a number"))),
                "required" => {
                    for name in argument.as_array().expect("a list").iter().filter_map(Value::as_str) {
                        if value.is_object() && value.get(name).is_none() {
                            errors.push(format!("{at}/{name}: missing"));
                        }
                    }
                }
                "properties" => {
                    for (name, schema) in argument.as_object().expect("an object") {
                        if let Some(field) = value.get(name) {
                            self.complete(schema, field, &format!("{at}/{name}"), errors);
                            described.insert(name.clone());
                        }
                    }
                }
                "additionalProperties" => {
                    for (name, field) in value.as_object().into_iter().flatten() {
                        if schema["properties"].get(name).is_none() {
                            self.complete(argument, field, &format!("{at}/{name}"), errors);
                            described.insert(name.clone());
                        }
                    }
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.complete(argument, item, &format!("{at}/{index}"), errors);
                    }
                }
                "$ref" => {
                    let target = self.resolve(argument.as_str().expect("a reference"));
                    described.extend(self.check(target, value, at, errors));
                }
                "allOf" => {
                    for schema in argument.as_array().expect("a list") {
                        described.extend(self.check(schema, value, at, errors));
                    }
                }
                "anyOf" => {
                    let mut failures = Vec::new();
                    let mut fits = false;
                    for schema in argument.as_array().expect("a list") {
                        let mut wrong = Vec::new();
                        let fields = self.check(schema, value, at, &mut wrong);
                        if wrong.is_empty() {
                            fits = true;
                            described.extend(fields);
                        }
                        failures.extend(wrong);
                    }
                    if !fits {
                        errors.extend(failures);
                    }
                }
                other => panic!("{at}: the schema uses {other}, which this validator does not know"),
            }
        }
        described
    }
}

/// Whether a value has the type with this name.
fn is_of(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no type is called {other}"),
    }
}
