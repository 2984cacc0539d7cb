package wire

// RescueTables asks for tables of a database as they were at a moment.
type RescueTables struct {
	PointInTime string `json:"pointInTime" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
	// Tables are named as in SQL: without a schema they are of "public", and double quotes keep capital letters.
	Tables []string `json:"tables" description:"1-50 names, as table or schema.table" example:"[\"orders\"]"`
}

// CompareMoments asks how what a database held at two moments differs.
type CompareMoments struct {
	From string `json:"from" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
	To   string `json:"to" format:"date-time" example:"2026-03-01T14:30:00+01:00"`
}

// FindMoment asks from which second on the answer of a query fulfils a comparison.
type FindMoment struct {
	// Query is one statement that gives one value. It is run with the rights of the database's owner, and changes nothing.
	Query string `json:"query" description:"1-16384 bytes" example:"SELECT count(*) FROM orders"`
	Until string `json:"until" description:"one of < <= = <> >= > and a number, or a text in single quotes" example:"< 1000"`
	// From and To are the moments between which it is looked for: without them, the beginning of the window and now.
	From *string `json:"from,omitzero" format:"date-time" example:"2026-03-01T12:30:00+01:00"`
	To   *string `json:"to,omitzero" format:"date-time" example:"2026-03-01T14:30:00+01:00"`
}
