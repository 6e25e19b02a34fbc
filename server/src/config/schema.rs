//! A JSON Schema of the file, for editors: made from the declaration, like everything else.

use serde_json::{Map, Value as Json, json};

use super::Settings;
use super::declared::DECLARED;
use super::setting::{ANY, Kind, Setting, Value};

/// The schema, draft 2020-12.
#[must_use]
pub fn schema() -> Json {
    let mut root = object();
    for setting in DECLARED {
        let parts: Vec<&str> = setting.key.split('.').collect();
        put(&mut root, &parts, setting);
    }
    if let Some(root) = root.as_object_mut() {
        let draft = json!("https://json-schema.org/draft/2020-12/schema");
        root.insert("$schema".to_owned(), draft);
        root.insert("title".to_owned(), json!("sessiond configuration"));
    }
    root
}

fn object() -> Json {
    json!({ "type": "object", "additionalProperties": false })
}

fn put(at: &mut Json, parts: &[&str], setting: &Setting) {
    let (Some((part, below)), Some(object_here)) = (parts.split_first(), at.as_object_mut()) else {
        return;
    };
    let inside = if *part == ANY {
        let inside = object_here
            .entry("additionalProperties")
            .or_insert_with(object);
        if !inside.is_object() {
            *inside = object();
        }
        inside
    } else {
        if below.is_empty() && setting.needed {
            let needed = object_here.entry("required").or_insert_with(|| json!([]));
            if let Some(needed) = needed.as_array_mut() {
                needed.push(json!(part));
            }
        }
        let properties = object_here
            .entry("properties")
            .or_insert_with(|| Json::Object(Map::new()));
        let leaf = below.is_empty();
        let new = || if leaf { leaf_of(setting) } else { object() };
        let Some(properties) = properties.as_object_mut() else {
            return;
        };
        properties.entry(*part).or_insert_with(new)
    };
    put(inside, below, setting);
}

fn leaf_of(setting: &Setting) -> Json {
    let mut leaf = match &setting.kind {
        Kind::Whole(range) => {
            json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
        }
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Text(_) => json!({ "type": "string", "minLength": 1 }),
        Kind::OneOf(words) => json!({ "enum": words }),
        Kind::List(_) => json!({ "type": "array", "items": { "type": "string" } }),
    };
    let default = (setting.get)(&Settings::default(), "").map(|value| match value {
        Value::Whole(value) => json!(value),
        Value::Bool(value) => json!(value),
        Value::Text(value) => json!(value),
        Value::List(values) => json!(values),
    });
    if let Some(leaf) = leaf.as_object_mut() {
        leaf.insert("description".to_owned(), json!(setting.about));
        leaf.extend(default.map(|default| ("default".to_owned(), default)));
    }
    leaf
}
