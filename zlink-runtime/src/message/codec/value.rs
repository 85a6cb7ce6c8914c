//! Values that stand behind an offset, and those among them that are messages.
//!
//! Generated code implements the traits for messages and unions; here they are for the types the language has itself.

use super::error::{DecodeError, DecodeProblem, EncodeError};
use super::field::Field;
use super::measure::Measure;
use super::reader::At;
use super::writer::{Offset, Slot, Writer};
use crate::id::{ActorId, ActorRef, MeshName, ObjectGeneration, Rid, SpotId, SpotRef};

/// A value that stands behind an offset: a string, an identity, a message or a union.
pub trait Value: Sized {
    /// Writes it and everything it holds.
    ///
    /// # Errors
    /// Where the value breaks a rule of its schema, or a limit.
    fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError>;

    /// Counts at most what it would be, encoded. `None` where it cannot be, or would be read as something else.
    fn measure(&self, measure: &mut Measure) -> Option<()>;

    /// Reads it.
    ///
    /// # Errors
    /// Where the bytes are not such a value.
    fn read(at: At<'_, '_>) -> Result<Self, DecodeError>;

    /// Reads it where its table may say that there is none: a union may.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    fn read_optional(at: At<'_, '_>) -> Result<Option<Self>, DecodeError> {
        Self::read(at).map(Some)
    }

    /// Writes it as an item of a list.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[inline]
    fn write_item(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
        self.write(writer)
    }

    /// Counts it as an item of a list.
    #[inline]
    fn measure_item(&self, measure: &mut Measure) -> Option<()> {
        self.measure(measure)
    }

    /// Reads it as an item of a list.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    fn read_item(at: At<'_, '_>) -> Result<Self, DecodeError> {
        Self::read(at)
    }
}

/// A message of a schema: what services exchange.
pub trait Message: Value + Send + 'static {
    /// Its name with its namespace, `billing.Charge`.
    const NAME: &'static str;
}

/// What a union without its member is.
#[cold]
#[must_use]
pub fn no_member() -> DecodeError {
    DecodeError::new(DecodeProblem::NoMember)
}

impl<V: Value> Value for Box<V> {
    #[inline]
    fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
        V::write(self, writer)
    }
    #[inline]
    fn measure(&self, measure: &mut Measure) -> Option<()> {
        V::measure(self, measure)
    }
    #[inline]
    fn read(at: At<'_, '_>) -> Result<Self, DecodeError> {
        V::read(at).map(Box::new)
    }
    #[inline]
    fn read_optional(at: At<'_, '_>) -> Result<Option<Self>, DecodeError> {
        Ok(V::read_optional(at)?.map(Box::new))
    }
}

impl Value for String {
    #[inline]
    fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
        writer.raw(self.as_bytes())
    }
    #[inline]
    fn measure(&self, measure: &mut Measure) -> Option<()> {
        measure.raw(self.as_bytes());
        Some(())
    }
    #[inline]
    fn read(at: At<'_, '_>) -> Result<Self, DecodeError> {
        at.string().map(str::to_owned)
    }
}

/// Bytes. FlatBuffers has no vector of vectors: in a list each has a table of its own.
impl Value for Vec<u8> {
    #[inline]
    fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
        writer.raw(self)
    }
    #[inline]
    fn measure(&self, measure: &mut Measure) -> Option<()> {
        measure.raw(self);
        Some(())
    }
    #[inline]
    fn read(at: At<'_, '_>) -> Result<Self, DecodeError> {
        at.bytes().map(<[u8]>::to_vec)
    }
    #[inline]
    fn write_item(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
        writer.boxed_bytes(self)
    }
    #[inline]
    fn measure_item(&self, measure: &mut Measure) -> Option<()> {
        measure.boxed_bytes(self)
    }
    #[inline]
    fn read_item(at: At<'_, '_>) -> Result<Self, DecodeError> {
        at.boxed_bytes()
    }
}

macro_rules! identity {
    ($($name:ident),+) => {$(
        impl Value for $name {
            #[inline]
            fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
                writer.raw(self.as_str().as_bytes())
            }
            #[inline]
            fn measure(&self, measure: &mut Measure) -> Option<()> {
                measure.raw(self.as_str().as_bytes());
                Some(())
            }
            #[inline]
            fn read(at: At<'_, '_>) -> Result<Self, DecodeError> {
                Self::new(at.string()?).map_err(|invalid| DecodeError::new(invalid.into()))
            }
        }
    )+};
}

identity!(SpotId, ActorId, MeshName);

impl Value for Rid {
    fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
        writer.raw(self.as_bytes())
    }
    fn measure(&self, measure: &mut Measure) -> Option<()> {
        measure.raw(self.as_bytes());
        Some(())
    }
    fn read(at: At<'_, '_>) -> Result<Self, DecodeError> {
        Self::new(at.bytes()?).map_err(|invalid| DecodeError::new(invalid.into()))
    }
}

macro_rules! reference {
    ($name:ident, $id:ident, $id_name:literal) => {
        impl $name {
            const ID: Field = Field::new(0, $id_name).required();
            const GENERATION: Field = Field::new(1, "object_generation");
            const MESH: Field = Field::new(2, "mesh_name").required();
            const NODE: Field = Field::new(3, "node_rid").required();
        }

        impl Value for $name {
            fn write(&self, writer: &mut Writer) -> Result<Offset, EncodeError> {
                let id = writer.required(Self::ID, &self.id)?;
                let generation = writer.inline(Self::GENERATION, &self.generation.get())?;
                let mesh = writer.required(Self::MESH, &self.mesh)?;
                let node = writer.required(Self::NODE, &self.node)?;
                let mut table = writer.table()?;
                generation.put(&mut table);
                id.put(&mut table);
                mesh.put(&mut table);
                node.put(&mut table);
                Ok(table.end())
            }

            fn measure(&self, measure: &mut Measure) -> Option<()> {
                measure.required(Self::ID, &self.id)?;
                measure.inline(Self::GENERATION, &self.generation.get())?;
                measure.required(Self::MESH, &self.mesh)?;
                measure.required(Self::NODE, &self.node)?;
                measure.table(&[0, 1, 2, 3])
            }

            fn read(at: At<'_, '_>) -> Result<Self, DecodeError> {
                let mut table = at.table()?;
                let number = table.inline(Self::GENERATION)?;
                let generation = ObjectGeneration::new(number)
                    .ok_or_else(|| DecodeError::new(DecodeProblem::Generation(number)).inside("object_generation"))?;
                Ok(Self {
                    id: table.required(Self::ID)?,
                    generation,
                    mesh: table.required(Self::MESH)?,
                    node: table.required(Self::NODE)?,
                })
            }
        }
    };
}

reference!(SpotRef, SpotId, "spot_id");
reference!(ActorRef, ActorId, "actor_id");
