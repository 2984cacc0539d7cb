// Package wire holds the JSON types of the API, written once: server, Go client and OpenAPI document use the same ones.
//
// The tags say what a field may be, in requests and in answers alike:
//
//	json:"name"            the field is always there
//	json:"name,omitzero"   the field may be left out
//	a pointer              without omitzero: null is a value
//	nullable:"true"        with omitzero: the field may be left out, and null is a value too
//	required:"false"       the field is not there where the embedded struct that has it is nil
//
// format, description, example, minimum and their like are for the OpenAPI document alone. The values of an enumeration come from
// its type in core, and so does the check of what a request says: a decoded request is well-formed JSON and no more.
package wire
