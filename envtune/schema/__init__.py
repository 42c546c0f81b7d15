"""The form of a document, in one language: types, validation with places, and the JSON Schema that is published."""
