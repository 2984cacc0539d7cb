package wire

// RescueTables asks for tables of a database as they were at a moment.
type RescueTables struct {
	PointInTime string `json:"pointInTime" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
	// Tables are named as in SQL: without a schema they are of "public", and double quotes keep capital letters.
	Tables []string `json:"tables" description:"1-50 names, as table or schema.table" example:"[\"orders\"]"`
}
