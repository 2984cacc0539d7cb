package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

// Usage is what a database used in a period, by hours, days or months. An hour in which the service could not see the database
// counts in no sample, and in no total.
type Usage struct {
	From          time.Time        `json:"from"`
	To            time.Time        `json:"to"`
	Resolution    usage.Resolution `json:"resolution"`
	QuotaBytes    int64            `json:"quotaBytes" description:"of the database, as it is now" example:"21474836480"`
	ConnectionCap *int             `json:"connectionCap" description:"as it is now; null: none" example:"60"`
	Total         UsageTotal       `json:"total"`
	Samples       []UsageSample    `json:"samples" description:"the oldest first"`
}

// DatabaseUsage is what a database came to in a month, also one that is gone.
type DatabaseUsage struct {
	DatabaseID   id.DatabaseID `json:"databaseId"`
	DatabaseName string        `json:"databaseName" description:"the last one of that month" example:"shop"`
	Total        UsageTotal    `json:"total"`
	Parts        []UsagePart   `json:"parts" description:"its hours or days that were seen, or the month; the oldest first"`
}

// UsagePart is what a database came to in an hour, a day or a month.
type UsagePart struct {
	At time.Time `json:"at" description:"when it began"`
	UsageTotal
}

// UsageTotal is what is billed by.
type UsageTotal struct {
	DatabaseHours   float64 `json:"databaseHours" description:"for how long there was a database" example:"720"`
	ConnectionHours float64 `json:"connectionHours" description:"for how long connections were in use, added up" example:"2161.25"`
	ByteHours       int64   `json:"byteHours" description:"bytes of the database, times hours" example:"772000000000"`
	BackupByteHours int64   `json:"backupByteHours" description:"the same of its backups" example:"154000000000"`
}

// UsageSample is what a database used in an hour, a day or a month.
type UsageSample struct {
	At          time.Time        `json:"at" description:"when it began"`
	SeenSeconds int64            `json:"seenSeconds" description:"for how long the service saw the database" example:"3600"`
	SizeBytes   int64            `json:"sizeBytes" description:"on average" example:"1073741824"`
	BackupBytes int64            `json:"backupBytes" description:"of its backups, on average" example:"214748364"`
	Connections UsageConnections `json:"connections"`
	Queries     int64            `json:"queries" example:"36000"`
	WaitMs      int64            `json:"waitMs" description:"how long clients waited for connections, added up" example:"250"`
}

// UsageConnections are connections to the database that were in use, and clients that waited for one.
type UsageConnections struct {
	Active  UsageLevel `json:"active"`
	Waiting UsageLevel `json:"waiting"`
	Cap     *int       `json:"cap" description:"of the connections that can be in use; null: none" example:"60"`
}

// UsageLevel is how many there were.
type UsageLevel struct {
	Average float64 `json:"average" example:"3.2"`
	Peak    int     `json:"peak" example:"14"`
}
