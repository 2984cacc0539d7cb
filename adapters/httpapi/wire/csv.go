package wire

import (
	"strconv"
	"time"
)

// SampleTable has a row for each sample, as CSV has it, below the names that JSON has.
func SampleTable(list []UsageSample) [][]string {
	rows := [][]string{{
		"at", "seenSeconds", "sizeBytes", "backupBytes", "activeAverage", "activePeak", "waitingAverage", "waitingPeak",
		"connectionCap", "queries", "waitMs",
	}}
	for _, s := range list {
		limit, c := "", s.Connections
		if c.Cap != nil {
			limit = strconv.Itoa(*c.Cap)
		}
		rows = append(rows, []string{
			s.At.UTC().Format(time.RFC3339), whole(s.SeenSeconds), whole(s.SizeBytes), whole(s.BackupBytes),
			fraction(c.Active.Average), strconv.Itoa(c.Active.Peak), fraction(c.Waiting.Average), strconv.Itoa(c.Waiting.Peak), limit,
			whole(s.Queries), whole(s.WaitMs),
		})
	}
	return rows
}

// PartTable has a row for each part of what databases came to.
func PartTable(list []DatabaseUsage) [][]string {
	rows := [][]string{{
		"at", "databaseId", "databaseName", "databaseHours", "connectionHours", "byteHours", "backupByteHours",
	}}
	for _, d := range list {
		for _, p := range d.Parts {
			rows = append(rows, []string{
				p.At.UTC().Format(time.RFC3339), string(d.DatabaseID), d.DatabaseName, fraction(p.DatabaseHours),
				fraction(p.ConnectionHours), whole(p.ByteHours), whole(p.BackupByteHours),
			})
		}
	}
	return rows
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func fraction(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
