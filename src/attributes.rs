// TEMPORARY
use crate::format::ObjectId;
use crate::txn::View;
pub struct Attributes;
impl Attributes {
    pub(crate) fn new(_: View, _: ObjectId, _: String) -> Self {
        Self
    }
}
