//! The groups below an object, each with its arrays laid out for Zarr.
//!
//! Holds [`hierarchy`]. Must not write.

use orthant::{DynArray, Group, ObjectKind, Result, Snapshot};

use crate::cover::Cover;

/// A group and what is directly in it.
#[derive(Debug)]
pub struct Node {
    /// The path below the object that was named, with a slash at its end unless it is empty.
    pub prefix: String,
    /// None where the object named is itself an array.
    pub group: Option<Group>,
    /// Its arrays.
    pub cover: Cover,
}

/// All groups from an object down, parents first.
pub fn hierarchy(snapshot: &Snapshot, path: &str, inner: bool) -> Result<Vec<Node>> {
    let root = snapshot.root();
    if root.kind(path)? == Some(ObjectKind::Array) {
        let array = root.dyn_array(path)?;
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let chunk = chunk_of(&array, inner);
        let cover = Cover::new(vec![(name.clone(), array, chunk)], &[name])?;
        return Ok(vec![Node {
            prefix: String::new(),
            group: None,
            cover,
        }]);
    }
    let mut nodes = Vec::new();
    let mut todo = vec![(
        String::new(),
        if path.is_empty() {
            root
        } else {
            root.group(path)?
        },
    )];
    while let Some((prefix, group)) = todo.pop() {
        let (mut arrays, mut names) = (Vec::new(), Vec::new());
        for member in group.members()? {
            let member = member?;
            match member.kind {
                ObjectKind::Array => {
                    let array = group.dyn_array(&member.name)?;
                    let chunk = chunk_of(&array, inner);
                    arrays.push((member.name.clone(), array, chunk));
                }
                ObjectKind::Group => {
                    let below = format!("{prefix}{}/", member.name);
                    todo.push((below, group.group(&member.name)?));
                }
            }
            names.push(member.name);
        }
        let cover = Cover::new(arrays, &names)?;
        nodes.push(Node {
            prefix,
            group: Some(group),
            cover,
        });
    }
    Ok(nodes)
}

/// The chunk that counts: the stored one, or the one within shards.
pub fn chunk_of(array: &DynArray, inner: bool) -> Vec<u64> {
    match array.shard_shape() {
        Some(shard) if !inner => shard,
        _ => array.chunk_shape(),
    }
}
