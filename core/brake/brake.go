// Package brake says when work has to wait because what it goes by cannot be trusted: what is deleted because its time is over
// does not come back when the clock is set right, or when newer metadata are found.
package brake

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Work is what kind of work waits.
type Work int

// The kinds of work. The zero value is the one that everything holds.
const (
	Destroys  Work = iota // it deletes or shuts out because a time is over
	Schedules             // it goes by stored times, and deletes nothing
	Harmless              // it goes by no stored time, or what it deletes is made again
)

// Reason is why work waits.
type Reason string

// The reasons.
const (
	Clock  Reason = "clock"  // the clock of the host and that of the metadata's server disagree
	Behind Reason = "behind" // servers have heard of operations that the metadata lack
)

// holds has the work that waits for each reason. Harmless work never does.
var holds = map[Reason][]Work{
	Clock:  {Destroys, Schedules},
	Behind: {Destroys},
}

// Reasons lists all of them.
func Reasons() []Reason { return []Reason{Clock, Behind} }

// Holds reports whether work waits for a reason.
func (r Reason) Holds(w Work) bool { return slices.Contains(holds[r], w) }

// Hold is a reason as it is now, with a text that tells an operator what is wrong.
type Hold struct {
	Reason Reason
	Text   string
}

func (h Hold) Error() string { return h.Text }

// Held is the error of work that waits.
type Held []Hold

func (h Held) Error() string {
	texts := make([]string, len(h))
	for i, one := range h {
		texts[i] = one.Text
	}
	return strings.Join(texts, "; ")
}

// Tolerance is by how much two clocks may differ. It is far more than clocks differ that are kept by NTP, and far less than
// anything is kept for.
const Tolerance = time.Minute

// Clocks compares the clock of a host, as read before and after the other one was, with that of the metadata's server; nil where
// they agree. What takes long to be read is given the benefit of the doubt.
func Clocks(before, metadata, after time.Time) *Hold {
	how, by := "ahead of", before.Sub(metadata)
	if by <= Tolerance {
		how, by = "behind", metadata.Sub(after)
	}
	if by <= Tolerance {
		return nil
	}
	return &Hold{Clock, fmt.Sprintf("this host's clock is %s %s that of the metadata database's server: set the wrong one right",
		by.Round(time.Second), how)}
}

// Lacks is for metadata that lack an operation of which a server has heard. They went back in time, by a restore or a failover
// that lost transactions, or are a copy that went its own way. So nothing that they say of times is to be trusted, on any server.
func Lacks(server string, o id.OperationID) Hold {
	return Hold{Behind, fmt.Sprintf("the server %s has heard of operations that the metadata lack, such as %s: they went back in "+
		"time, or are another installation's; look at what differs, and confirm that they count (pgherd admin metadata confirm)",
		server, o)}
}
