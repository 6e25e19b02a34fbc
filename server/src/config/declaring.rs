//! Short ways of declaring a setting, by what it takes and the field that it is put into.
//!
//! What must never enter: a particular setting.

/// A whole number in a field; `scale` of the field's unit are one of the key's.
macro_rules! whole {
    ($key:literal, $range:expr, $($field:ident).+, $about:literal) => {
        whole!($key, $range, 1, $($field).+, $about)
    };
    ($key:literal, $range:expr, $scale:expr, $($field:ident).+, $about:literal) => {
        Setting {
            key: $key,
            kind: Kind::Whole($range),
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, _, value| {
                if let Value::Whole(value) = value {
                    settings.$($field).+ = Number::put(value, $scale);
                }
            },
            get: |settings, _| Some(Value::Whole(settings.$($field).+.took($scale))),
        }
    };
}

/// Yes or no in a field.
macro_rules! switch {
    ($key:literal, $($field:ident).+, $about:literal) => {
        Setting {
            key: $key,
            kind: Kind::Bool,
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, _, value| {
                if let Value::Bool(value) = value {
                    settings.$($field).+ = value;
                }
            },
            get: |settings, _| Some(Value::Bool(settings.$($field).+)),
        }
    };
}

/// A text in a field.
macro_rules! text {
    ($key:literal, $kind:expr, $($field:ident).+, $about:literal) => {
        Setting {
            key: $key,
            kind: $kind,
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, _, value| {
                if let Value::Text(value) = value {
                    settings.$($field).+ = Said::put(value);
                }
            },
            get: |settings, _| settings.$($field).+.said().map(Value::Text),
        }
    };
}

/// Texts in a field.
macro_rules! list {
    ($key:literal, $kind:expr, $($field:ident).+, $about:literal) => {
        Setting {
            key: $key,
            kind: $kind,
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, _, value| {
                if let Value::List(values) = value {
                    settings.$($field).+ = values;
                }
            },
            get: |settings, _| Some(Value::List(settings.$($field).+.clone())),
        }
    };
}

/// A text in a field of what a name stands for.
macro_rules! named {
    ($key:literal, $kind:expr, $($map:ident).+, $field:ident, $about:literal) => {
        Setting {
            key: $key,
            kind: $kind,
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, name, value| {
                if let Value::Text(value) = value {
                    of(&mut settings.$($map).+, name).$field = Said::put(value);
                }
            },
            get: |settings, name| {
                let found = settings.$($map).+.get(name)?;
                found.$field.said().map(Value::Text)
            },
        }
    };
}

/// Yes or no in a field of what a name stands for.
macro_rules! named_switch {
    ($key:literal, $($map:ident).+, $field:ident, $about:literal) => {
        Setting {
            key: $key,
            kind: Kind::Bool,
            flag: None,
            variable: None,
            about: $about,
            needed: false,
            set: |settings, name, value| {
                if let Value::Bool(value) = value {
                    of(&mut settings.$($map).+, name).$field = value;
                }
            },
            get: |settings, name| {
                let found = settings.$($map).+.get(name)?;
                Some(Value::Bool(found.$field))
            },
        }
    };
}
