package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Timeline numbers what PostgreSQL calls so: WAL that goes on after it was replayed up to some place, as after the recovery of a
// lost server, is another one's, with the next number.
type Timeline uint32

// Fork is where a timeline ended, and the next one began.
type Fork struct {
	Of Timeline
	// At is the position in WAL from which on it is the next one's.
	At uint64
	// Lost is what was lost then, with the server: nothing is known of the time after From and before To. Zero: nothing was.
	Lost Loss
}

// Loss is a time.
type Loss struct{ From, To time.Time }

// historyPattern is the name of the file that says how a timeline has come about.
var historyPattern = regexp.MustCompile(`^([0-9A-F]{8})\.history$`)

// ParseHistoryName reads which timeline a file is the history of.
func ParseHistoryName(name string) (t Timeline, ok bool) {
	m := historyPattern.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 16, 32)
	return Timeline(n), err == nil && n > 1
}

// History is the name of the file that says how the timeline has come about.
func (t Timeline) History() string { return fmt.Sprintf("%08X.history", uint32(t)) }

// lostMark begins the line in a history, a comment to PostgreSQL, by which a recovery says what was lost. It belongs to the fork
// before. The last word is one of its own for each recovery: so two of the same archive are told apart.
const lostMark = "# pgherd lost"

const historyTime = "2006-01-02T15:04:05.000000Z"

// lostLine is the line.
func lostLine(l Loss, own string) string {
	return fmt.Sprintf("%s %s %s %s\n", lostMark, l.From.UTC().Format(historyTime), l.To.UTC().Format(historyTime), own)
}

// ParseHistory reads a history: the forks, ascending.
func ParseHistory(text []byte) (forks []Fork, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case strings.HasPrefix(lines.Text(), lostMark+" "):
			if len(forks) == 0 || len(words) != 6 {
				return nil, errHistory
			}
			l := &forks[len(forks)-1].Lost
			var from, to error
			l.From, from = time.Parse(historyTime, words[3])
			l.To, to = time.Parse(historyTime, words[4])
			if from != nil || to != nil || l.To.Before(l.From) {
				return nil, errHistory
			}
		case words[0][0] == '#':
		default:
			f, ok := parseFork(words)
			if last := len(forks) - 1; !ok || last >= 0 && (f.Of <= forks[last].Of || f.At < forks[last].At) {
				return nil, errHistory
			}
			forks = append(forks, f)
		}
	}
	return forks, nil
}

var errHistory = errors.New("the history of a timeline cannot be read")

// parseFork reads a line such as "1 0/6000000 no recovery target specified".
func parseFork(words []string) (f Fork, ok bool) {
	if len(words) < 2 {
		return f, false
	}
	of, err := strconv.ParseUint(words[0], 10, 32)
	high, low, cut := strings.Cut(words[1], "/")
	h, highErr := strconv.ParseUint(high, 16, 32)
	l, lowErr := strconv.ParseUint(low, 16, 32)
	return Fork{Of: Timeline(of), At: h<<32 | l}, cut && errors.Join(err, highErr, lowErr) == nil && of > 0
}

// lineage is through which timelines a server has come to its own. What the archive has of others belongs to a server that has
// gone on although another one was recovered from its archive. The zero lineage is not known, and has everything.
type lineage struct {
	timeline Timeline
	forks    []Fork // ascending
}

// of is the timeline whose the segment of a number is.
func (l lineage) of(number uint64, size int64) Timeline {
	for _, f := range l.forks {
		if number < f.At/uint64(size) { // the one with the fork in it is written anew
			return f.Of
		}
	}
	return l.timeline
}

func (l lineage) has(s Segment, size int64) bool {
	return l.timeline == 0 || s.timeline() == l.of(s.number(size), size)
}

func (l lineage) stored(list []Stored, size int64) []Stored {
	return slices.DeleteFunc(slices.Clone(list), func(s Stored) bool { return !l.has(s.Segment, size) })
}

func (l lineage) backups(list []Backup, size int64) []Backup {
	return slices.DeleteFunc(slices.Clone(list), func(b Backup) bool { return !l.has(b.First, size) || !l.has(b.Last, size) })
}

// ends reports whether a span ends on the server's own timeline, where it goes on.
func (l lineage) ends(s Span) bool { return l.timeline == 0 || s.Last.timeline() == l.timeline }

// cut leaves out of spans what was lost.
func (l lineage) cut(list []Span, size int64) (parts []Span) {
	for _, s := range list {
		reached := true
		for _, f := range l.forks {
			if reached && s.From.Before(f.Lost.To) {
				before := s
				if before.To.After(f.Lost.From) {
					before.To = f.Lost.From
				}
				if reached = s.Last.timeline() > f.Of; reached {
					before.Last = l.lastBefore(f, size)
				}
				if !before.To.Before(before.From) {
					parts = append(parts, before)
				}
				if s.From = f.Lost.To; s.To.Before(s.From) { // nothing was committed before it was back
					s.To = s.From
				}
			}
		}
		if reached {
			parts = append(parts, s)
		}
	}
	slices.SortStableFunc(parts, bySpanBegin)
	return parts
}

// lastBefore is the last segment that has anything of before a fork.
func (l lineage) lastBefore(f Fork, size int64) Segment {
	n := f.At / uint64(size)
	if f.At%uint64(size) == 0 {
		n--
	}
	return segmentOf(l.of(n, size), n, size)
}
