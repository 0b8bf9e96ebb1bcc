//! `attr`: attributes of groups and arrays.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use orthant::{AttributeValue, Attributes, DataType, Json, Limits, ObjectKind};

use crate::args::Message;
use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::target::Target;
use crate::text::{Table, escape};

/// Arguments of `attr`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant attr set ocean.orth:/model/temp units K
  orthant attr set ocean.orth:/model/temp valid_range '[-5, 40]' --type f32
  orthant attr get ocean.orth:/model/temp units")]
pub(crate) struct Attr {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print one attribute, or all
    Get {
        #[command(flatten)]
        object: Object,
        /// The attribute's name
        name: Option<String>,
    },
    /// Set one attribute, or all members of a JSON object with --from
    Set {
        #[command(flatten)]
        object: Object,
        /// The attribute's name
        #[arg(required_unless_present = "from")]
        name: Option<String>,
        /// JSON where it parses as such, else text
        #[arg(allow_hyphen_values = true, required_unless_present = "from")]
        value: Option<String>,
        /// Element type of a number or of lists of numbers; `string` takes VALUE as text
        #[arg(long = "type", value_name = "T")]
        data_type: Option<String>,
        /// A JSON file: the value, or without NAME an object of attributes
        #[arg(long, value_name = "FILE.json", conflicts_with = "value")]
        from: Option<PathBuf>,
        #[command(flatten)]
        message: Message,
    },
    /// Remove one attribute
    Rm {
        #[command(flatten)]
        object: Object,
        /// The attribute's name
        name: String,
        #[command(flatten)]
        message: Message,
    },
    /// List attributes and their types
    Ls {
        #[command(flatten)]
        object: Object,
    },
}

#[derive(Debug, Args)]
struct Object {
    /// FILE, or FILE:/PATH
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
}

impl Object {
    fn target(&self) -> Result<Target> {
        Target::with_path(&self.target, self.path.as_deref())?.whole()
    }

    fn read(&self, session: &Session) -> Result<(Target, Attributes)> {
        let target = self.target()?;
        let snapshot = session.snapshot(&target.file)?;
        let attributes = match super::info::kind(&snapshot, &target)? {
            ObjectKind::Group => snapshot.group(&target.path)?.attributes(),
            ObjectKind::Array => snapshot.dyn_array(&target.path)?.attributes(),
        };
        Ok((target, attributes))
    }
}

pub(crate) fn run(args: &Attr, session: &Session) -> Result<()> {
    match &args.action {
        Action::Get {
            object,
            name: Some(name),
        } => get(object, name, session),
        Action::Get { object, name: None } | Action::Ls { object } => list(object, session),
        Action::Set {
            object,
            name,
            value,
            data_type,
            from,
            message,
        } => {
            let values = match (from, value) {
                (Some(file), _) => from_file(file, name.as_deref(), data_type.as_deref())?,
                (None, Some(value)) => {
                    let name = name.clone().unwrap_or_default();
                    vec![(name, from_text(value, data_type.as_deref())?)]
                }
                (None, None) => return Err(Failure::usage("a value or --from is needed")),
            };
            change(object, session, message, |attributes| {
                Ok(attributes.set_all(values)?)
            })
        }
        Action::Rm {
            object,
            name,
            message,
        } => {
            let target = object.target()?;
            change(object, session, message, |attributes| {
                if attributes.remove(name)? {
                    Ok(())
                } else {
                    Err(no_attribute(&target, name))
                }
            })
        }
    }
}

fn get(object: &Object, name: &str, session: &Session) -> Result<()> {
    let (target, attributes) = object.read(session)?;
    let value = attributes
        .get(name)?
        .ok_or_else(|| no_attribute(&target, name))?;
    if session.json() {
        return print_json(&answer(
            "attr",
            [
                ("path", text(target.slashed())),
                ("name", text(name)),
                ("value", value.to_json()),
                ("type", text(value.type_name())),
            ],
        ));
    }
    let shown = match value.to_json() {
        Json::String(t) => escape(&t).into_owned(),
        other => other.to_string(),
    };
    stdout(|out| writeln!(out, "{shown}"))
}

fn list(object: &Object, session: &Session) -> Result<()> {
    let (target, attributes) = object.read(session)?;
    if session.json() {
        let mut members = vec![("path", text(target.slashed()))];
        members.extend(describe::attributes(&attributes)?);
        return print_json(&answer("attr", members));
    }
    let mut table = Table::new(&[]);
    for (name, value) in attributes.list()? {
        table.row([name, value.type_name(), value.to_json().to_string()]);
    }
    stdout(|out| write!(out, "{table}"))
}

fn change(
    object: &Object,
    session: &Session,
    message: &Message,
    act: impl FnOnce(&Attributes) -> Result<()>,
) -> Result<()> {
    let target = object.target()?;
    let writer = session.writer(&target.file)?;
    let root = writer.root();
    let kind = if target.path.is_empty() {
        Some(ObjectKind::Group)
    } else {
        root.kind(&target.path)?
    };
    let attributes = match kind {
        Some(ObjectKind::Array) => writer.dyn_array(&target.path)?.attributes(),
        _ => writer.group(&target.path)?.attributes(),
    };
    act(&attributes)?;
    let generation = writer.commit(message.message.as_deref())?;
    if session.json() {
        let members = [
            ("path", text(target.slashed())),
            ("generation", uint(generation)),
        ];
        return print_json(&answer("attr", members));
    }
    Ok(())
}

fn no_attribute(target: &Target, name: &str) -> Failure {
    Failure::not_found(format!("{}: no attribute {name:?}", target.display()))
        .in_file(&target.file)
        .in_array(&target.slashed())
        .help(format!("orthant attr ls {}", target.display()))
}

fn from_text(value: &str, data_type: Option<&str>) -> Result<AttributeValue> {
    let limits = Limits::default();
    match data_type {
        None => Ok(AttributeValue::from_text(value, &limits)),
        Some(name) => {
            let data_type: DataType = parse_type(name)?;
            AttributeValue::from_typed_text(&data_type, value, &limits)
                .map_err(|e| Failure::from(e).into_argument())
        }
    }
}

fn parse_type(name: &str) -> Result<DataType> {
    name.parse().map_err(|e| Failure::from(e).into_argument())
}

/// The value that a file holds, or one attribute for each member of its object.
fn from_file(
    file: &std::path::Path,
    name: Option<&str>,
    data_type: Option<&str>,
) -> Result<Vec<(String, AttributeValue)>> {
    let content = std::fs::read_to_string(file).map_err(|e| Failure::io("read", file, &e))?;
    let json: Json = content
        .parse()
        .map_err(|e| Failure::from(e).into_argument().in_file(file))?;
    let value = |json: Json| match data_type {
        None => Ok(AttributeValue::from(json)),
        Some(name) => {
            let typed = orthant::TypedArray::from_json(parse_type(name)?, &json);
            typed
                .map(AttributeValue::Typed)
                .map_err(|e| Failure::from(e).into_argument())
        }
    };
    match (name, json) {
        (Some(name), json) => Ok(vec![(name.to_owned(), value(json)?)]),
        (None, Json::Object(members)) => members
            .into_iter()
            .map(|(name, json)| Ok((name, value(json)?)))
            .collect(),
        (None, _) => Err(Failure::usage(format!(
            "{}: without NAME the file must hold a JSON object",
            file.display()
        ))),
    }
}
