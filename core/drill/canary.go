package drill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Canary is a mark that an agent sets in its ledger once it sees that a database has changed. The ledger is in the archive as the
// databases are, so a ledger that is had back has exactly the marks that were set until then. Nobody but the agent writes there.
type Canary struct {
	At time.Time `json:"at"`
	// OID is PostgreSQL's of the database, and Changes what PostgreSQL had counted of it: rows written and removed, since Counted.
	OID     uint32    `json:"oid"`
	Changes int64     `json:"changes"`
	Counted time.Time `json:"counted"`
	// SameUntil is when the agent last saw that the database was still as the mark before says; the change came after that.
	SameUntil time.Time `json:"sameUntil"`
	// Digest is Sum after the mark before, in lower-case hex. So each mark says that all before it are there.
	Digest string `json:"digest"`
}

// Sum is the digest of a mark of a database after the one before it, nil for the first. The agent has PostgreSQL take the same.
func (c Canary) Sum(of id.DatabaseID, before *Canary) string {
	chain := ""
	if before != nil {
		chain = before.Digest
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %d %d %s", of, c.At.UnixMicro(), c.OID, c.Changes, c.Counted.UnixMicro(),
		c.SameUntil.UnixMicro(), chain))
	return hex.EncodeToString(sum[:])
}

// equal compares what is recorded.
func (c Canary) equal(o Canary) bool {
	return c.At.Equal(o.At) && c.OID == o.OID && c.Digest == o.Digest
}

// CommitTime is how much later than its time a mark may be committed.
const CommitTime = time.Minute

// Marks are those of one database: as they are in the server's ledger, which has forgotten old ones, and in the one that was had
// back. Both are ascending.
type Marks struct {
	Of        id.DatabaseID
	Live, Had []Canary
}

// Compare says why what was had back is not of a moment; empty: it is. It must have the marks that were set until then, and none
// that was set later. What the server has forgotten meanwhile is not compared.
func (m Marks) Compare(at time.Time) (why string) {
	if why := m.chained("the server's ledger", m.Live); why != "" {
		return why
	}
	if why := m.chained("the ledger that was had back", m.Had); why != "" {
		return why
	}
	for _, c := range m.Had {
		if c.At.After(at) {
			return fmt.Sprintf("what was had back is of a later time: it has the mark of %s", text(c.At))
		}
		if kept := len(m.Live) > 0 && !c.At.Before(m.Live[0].At); kept && !has(m.Live, c) {
			return fmt.Sprintf("what was had back has a mark of %s that the server does not have", text(c.At))
		}
	}
	for _, c := range m.Live {
		if !c.At.After(at.Add(-CommitTime)) && !has(m.Had, c) {
			return fmt.Sprintf("what was had back is of an earlier time: it lacks the mark of %s", text(c.At))
		}
	}
	return ""
}

// chained says why a list is no chain of marks; empty: it is. What is before its first is not known.
func (m Marks) chained(where string, list []Canary) string {
	for i := 1; i < len(list); i++ {
		if list[i].Digest != list[i].Sum(m.Of, &list[i-1]) {
			return fmt.Sprintf("in %s, the mark of %s does not follow on the one before", where, text(list[i].At))
		}
	}
	return ""
}

func has(list []Canary, c Canary) bool { return slices.ContainsFunc(list, c.equal) }

func text(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// countedAfter is how much later than a commit PostgreSQL may count what it has changed.
const countedAfter = 2 * time.Minute

// Unchanged reports whether marks show that nothing was written to a database from one time to another: marks are all that the
// server has of it, and looked is when the agent last looked at it.
func Unchanged(marks []Canary, looked, from, to time.Time) bool {
	base := -1
	for i, c := range marks {
		if !c.At.After(from) {
			base = i
		}
	}
	if base < 0 {
		return false
	}
	until := looked
	if next := base + 1; next < len(marks) {
		until = marks[next].SameUntil
	}
	// What was counted after the mark may have been committed before it, which does no harm; what is counted after the last look may
	// have been committed before that.
	return !until.Before(to.Add(countedAfter))
}
