//! The handle of an array whose element type the program knows.
//!
//! Holds [`Array`]: a [`DynArray`] with a checked element type, and `ndarray` in and out. Must not hold algorithms.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::error::{Error, Result};
use crate::grid::Selection;

use super::bounds::{End, Roll};
use super::chunk::reserve;
use super::element::{Element, Elements, Source};
use super::handle::{Block, DynArray};
use super::receipt::{Receipt, ShrinkReceipt, WriteReceipt};
use super::spec::{element_bytes, element_from_bytes};

/// An array with elements of type `T`. Everything a [`DynArray`] offers, and typed reads and writes.
#[derive(Debug, Clone)]
pub struct Array<T> {
    inner: DynArray,
    element: PhantomData<fn() -> T>,
}

impl<T> Deref for Array<T> {
    type Target = DynArray;

    fn deref(&self) -> &DynArray {
        &self.inner
    }
}

impl DynArray {
    /// The same array, its elements read and written as `T`.
    ///
    /// # Errors
    /// `TypeMismatch` when the stored type is another; nothing is converted silently.
    pub fn typed<T: Element>(&self) -> Result<Array<T>> {
        let stored = self.data_type();
        if T::accepts(&stored) {
            return Ok(Array {
                inner: self.clone(),
                element: PhantomData,
            });
        }
        self.placed(|| {
            Err(Error::type_mismatch("element type")
                .expected(format_args!("the stored type {stored}"))
                .found(T::data_type()))
        })
    }
}

impl<T: Element> Array<T> {
    /// The value of elements never written.
    ///
    /// # Errors
    /// `Corrupt` for a text that is not UTF-8.
    pub fn fill_value(&self) -> Result<T> {
        element_from_bytes(&self.data_type(), &self.fill_bytes())
    }

    /// A block of this array's type, for [`crate::Appender::push`] and the calls that take one: `items` in C order.
    ///
    /// # Errors
    /// `InvalidArgument` (`shape`) where `items` are more or fewer than the shape holds.
    pub fn block(&self, shape: impl IntoIterator<Item = u64>, items: &[T]) -> Result<Block> {
        let shape: Vec<u64> = shape.into_iter().collect();
        let count = shape.iter().try_fold(1_u64, |n, &m| n.checked_mul(m));
        if count != Some(items.len() as u64) {
            return Err(Error::invalid("block")
                .expected(format_args!("elements for the shape {shape:?}"))
                .found(items.len())
                .reason("shape"));
        }
        let elements = match T::source(items) {
            Source::Fixed(bytes) => Elements::Fixed(bytes.into_owned()),
            Source::Variable(items) => {
                Elements::Variable(items.into_iter().map(Into::into).collect())
            }
        };
        Ok(Block {
            data_type: self.data_type(),
            shape,
            elements,
        })
    }

    /// Reads a region as a vector in C order.
    ///
    /// # Errors
    /// As [`DynArray::read`].
    pub fn read_vec(&self, selection: impl Into<Selection>) -> Result<Vec<T>> {
        self.read_parts(&selection.into())
            .map(|(items, _, _)| items)
    }

    /// Reads a region into `out`, C order, exactly as long as the region. Types with a plain memory form go straight
    /// there.
    ///
    /// # Errors
    /// As [`DynArray::read`]; `InvalidArgument` (`shape`) for a buffer of another length.
    pub fn read_into(&self, selection: impl Into<Selection>, out: &mut [T]) -> Result<Receipt> {
        let selection = selection.into();
        if let Some(bytes) = T::bytes_mut(out) {
            let receipt = self.inner.read_bytes_into(selection, bytes)?;
            T::fix_order(out);
            return Ok(receipt);
        }
        let (items, _, receipt) = self.read_parts(&selection)?;
        if items.len() != out.len() {
            return self.placed(|| {
                Err(Error::invalid("buffer")
                    .expected(format_args!("{} elements for {selection}", items.len()))
                    .found(out.len())
                    .reason("shape"))
            });
        }
        for (to, from) in out.iter_mut().zip(items) {
            *to = from;
        }
        Ok(receipt)
    }

    fn read_parts(&self, selection: &Selection) -> Result<(Vec<T>, Vec<u64>, Receipt)> {
        let picked = self.placed(|| selection.resolve(&self.compiled()?.layout.domain, false))?;
        let limit = self.limits().read_bytes;
        let fits = picked
            .element_count()
            .and_then(|n| n.checked_mul(size_of::<T>() as u128))
            .filter(|&n| n <= u128::from(limit));
        // Elements with a plain memory form are read where they stay; a result above the limit is refused below.
        let n = fits.and_then(|_| usize::try_from(picked.element_count()?).ok());
        if let Some(n) = n
            && T::bytes_mut(&mut []).is_some()
        {
            reserve(n.checked_mul(size_of::<T>())).map(drop)?;
            if let Some(mut items) = T::blank(n) {
                let receipt = self.read_into(selection.clone(), &mut items)?;
                return Ok((items, picked.shape(), receipt));
            }
        }
        let (block, receipt) = self.inner.read_with_receipt(selection.clone())?;
        Ok((T::collect(block.elements)?, block.shape, receipt))
    }

    /// Writes a slice in C order into a region of as many elements.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    pub fn write_slice(
        &self,
        selection: impl Into<Selection>,
        items: &[T],
    ) -> Result<WriteReceipt> {
        self.inner
            .write_source(&selection.into(), None, T::source(items))
    }

    /// Sets every element of a region to one value. Whole chunks take no payload.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a number is given by value; a text is read once"
    )]
    pub fn write_scalar(&self, selection: impl Into<Selection>, value: T) -> Result<WriteReceipt> {
        self.inner
            .write_scalar_bytes(selection, &element_bytes(&value))
    }
}

impl DynArray {
    /// Grows `axis` at its low edge by the block's extent and writes the block there. No stored chunk moves.
    ///
    /// # Errors
    /// As [`DynArray::grow`] and [`DynArray::write`].
    pub fn prepend_block(&self, axis: usize, block: &Block) -> Result<WriteReceipt> {
        self.attach_block(axis, End::Low, Roll::Keep, block)
            .map(|r| r.0)
    }

    /// Grows `axis` at its high edge by the block's extent and writes the block there.
    ///
    /// # Errors
    /// As [`DynArray::grow`] and [`DynArray::write`].
    pub fn append_block(&self, axis: usize, block: &Block) -> Result<WriteReceipt> {
        self.attach_block(axis, End::High, Roll::Keep, block)
            .map(|r| r.0)
    }

    /// Appends the block at the high edge of `axis` and cuts as much at the low edge, in one step.
    ///
    /// # Errors
    /// As [`DynArray::grow`] and [`DynArray::write`].
    pub fn advance_block(
        &self,
        axis: usize,
        block: &Block,
    ) -> Result<(WriteReceipt, ShrinkReceipt)> {
        self.attach_block(axis, End::High, Roll::Same, block)
    }

    fn attach_block(
        &self,
        axis: usize,
        end: End,
        roll: Roll,
        block: &Block,
    ) -> Result<(WriteReceipt, ShrinkReceipt)> {
        let data_type = self.data_type();
        if block.data_type != data_type {
            return self.placed(|| {
                Err(Error::type_mismatch("elements")
                    .expected(&data_type)
                    .found(&block.data_type))
            });
        }
        let source = match &block.elements {
            Elements::Fixed(bytes) => super::element::Source::Fixed(bytes.as_slice().into()),
            Elements::Variable(items) => {
                super::element::Source::Variable(items.iter().map(AsRef::as_ref).collect())
            }
        };
        self.attach(axis, end, roll, &block.shape, source)
    }
}

#[cfg(feature = "ndarray")]
#[cfg_attr(docsrs, doc(cfg(feature = "ndarray")))]
mod with_ndarray {
    use ndarray::{ArrayD, ArrayView, CowArray, Dimension, IxDyn};

    use super::{
        Array, Element, End, Error, Receipt, Result, Roll, Selection, ShrinkReceipt, WriteReceipt,
    };

    /// A block in C order and its shape.
    fn standard<'a, T: Element, D: Dimension>(
        block: &'a ArrayView<'_, T, D>,
    ) -> (CowArray<'a, T, D>, Vec<u64>) {
        (
            block.as_standard_layout(),
            block.shape().iter().map(|&n| n as u64).collect(),
        )
    }

    fn slice<'a, T, D: Dimension>(block: &'a CowArray<'_, T, D>) -> Result<&'a [T]> {
        block
            .as_slice()
            .ok_or_else(|| Error::invalid("block").expected("elements in C order"))
    }

    impl<T: Element> Array<T> {
        /// Reads a region. Axes given as a single index are dropped; result indexes count from 0, the region's start.
        ///
        /// # Errors
        /// As [`crate::DynArray::read`].
        pub fn read(&self, selection: impl Into<Selection>) -> Result<ArrayD<T>> {
            self.read_with_receipt(selection).map(|(block, _)| block)
        }

        /// Reads a region and tells what that cost.
        ///
        /// # Errors
        /// As [`crate::DynArray::read`].
        pub fn read_with_receipt(
            &self,
            selection: impl Into<Selection>,
        ) -> Result<(ArrayD<T>, Receipt)> {
            let (items, shape, receipt) = self.read_parts(&selection.into())?;
            let shape: Vec<usize> = shape
                .iter()
                .map(|&n| usize::try_from(n).unwrap_or(usize::MAX))
                .collect();
            let block = ArrayD::from_shape_vec(IxDyn(&shape), items)
                .map_err(|e| Error::invalid("shape of the result").found(e))?;
            Ok((block, receipt))
        }

        /// Writes a block of a region's shape (axes given as a single index left out or not), of any layout.
        ///
        /// # Errors
        /// As [`crate::DynArray::write`].
        #[expect(
            clippy::needless_pass_by_value,
            reason = "views are small and given as `block.view()`"
        )]
        pub fn write<D: Dimension>(
            &self,
            selection: impl Into<Selection>,
            block: ArrayView<'_, T, D>,
        ) -> Result<WriteReceipt> {
            let (block, shape) = standard(&block);
            self.write_source(&selection.into(), Some(&shape), T::source(slice(&block)?))
        }

        /// Grows `axis` at its low edge by the block's extent and writes the block there. No stored chunk moves.
        ///
        /// # Errors
        /// As [`crate::DynArray::grow`] and [`crate::DynArray::write`].
        #[expect(
            clippy::needless_pass_by_value,
            reason = "views are small and given as `block.view()`"
        )]
        pub fn prepend<D: Dimension>(
            &self,
            axis: usize,
            block: ArrayView<'_, T, D>,
        ) -> Result<WriteReceipt> {
            let (block, shape) = standard(&block);
            self.attach(
                axis,
                End::Low,
                Roll::Keep,
                &shape,
                T::source(slice(&block)?),
            )
            .map(|r| r.0)
        }

        /// Grows `axis` at its high edge by the block's extent and writes the block there.
        ///
        /// # Errors
        /// As [`crate::DynArray::grow`] and [`crate::DynArray::write`].
        #[expect(
            clippy::needless_pass_by_value,
            reason = "views are small and given as `block.view()`"
        )]
        pub fn append<D: Dimension>(
            &self,
            axis: usize,
            block: ArrayView<'_, T, D>,
        ) -> Result<WriteReceipt> {
            let (block, shape) = standard(&block);
            self.attach(
                axis,
                End::High,
                Roll::Keep,
                &shape,
                T::source(slice(&block)?),
            )
            .map(|r| r.0)
        }

        /// Appends the block at the high edge of `axis` and cuts as much at the low edge, in one step.
        ///
        /// # Errors
        /// As [`crate::DynArray::grow`] and [`crate::DynArray::write`].
        #[expect(
            clippy::needless_pass_by_value,
            reason = "views are small and given as `block.view()`"
        )]
        pub fn advance_with<D: Dimension>(
            &self,
            axis: usize,
            block: ArrayView<'_, T, D>,
        ) -> Result<(WriteReceipt, ShrinkReceipt)> {
            let (block, shape) = standard(&block);
            self.attach(
                axis,
                End::High,
                Roll::Same,
                &shape,
                T::source(slice(&block)?),
            )
        }
    }
}
