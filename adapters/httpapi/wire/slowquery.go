package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/slowquery"
)

// SlowQueries are the statements that a database's logins have run, the first 50 in an order.
type SlowQueries struct {
	Since   time.Time       `json:"since" description:"when the database server began to count, or began anew"`
	Evicted bool            `json:"evicted" description:"it has since forgotten statements that ran seldom, for room"`
	Order   slowquery.Order `json:"order"`
	Queries []SlowQuery     `json:"queries"`
}

// SlowQuery is a statement of one login. Statements that differ in their constants alone are one.
type SlowQuery struct {
	// ID is PostgreSQL's query identifier, as in pg_stat_activity.
	ID       string  `json:"id" description:"PostgreSQL's query identifier" example:"-2834563459813457"`
	Username string  `json:"username" example:"orders"`
	Query    string  `json:"query" description:"its beginning, without constants" example:"SELECT * FROM t WHERE a = $1"`
	Calls    int64   `json:"calls" description:"executions that came to their end"`
	Rows     int64   `json:"rows" description:"returned or changed, in all"`
	TotalMs  float64 `json:"totalMs" description:"time of execution in all, in milliseconds" example:"8123.5"`
	MeanMs   float64 `json:"meanMs" description:"of each execution" example:"16.2"`
	MaxMs    float64 `json:"maxMs" description:"of the longest execution" example:"920.1"`
}
