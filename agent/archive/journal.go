package archive

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Stored is a segment that the archive has. Every transaction that was committed before Ended is in it or in one before.
type Stored struct {
	Segment Segment
	Ended   time.Time
}

// journal is the file in which the agent notes what it has stored, a line each: the archive itself does not say when a segment
// ended. A file that is lost, or that lacks its last lines, is made again from what the archive says.
type journal struct {
	path string
	mu   sync.Mutex
	list []Stored // ascending
}

func openJournal(path string) (*journal, error) {
	j := &journal{path: path}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if s, whole := readLine(lines.Text()); whole {
			j.list = append(j.list, s)
		}
	}
	slices.SortStableFunc(j.list, bySegment)
	j.list = slices.CompactFunc(j.list, func(a, b Stored) bool { return a.Segment == b.Segment })
	return j, nil
}

func bySegment(a, b Stored) int { return cmp.Compare(a.Segment, b.Segment) }

// readLine reads a line; one that a crash has cut short is not whole.
func readLine(line string) (s Stored, whole bool) {
	name, ended, _ := strings.Cut(line, " ")
	segment, ok := ParseSegment(name)
	micros, err := strconv.ParseInt(ended, 10, 64)
	return Stored{segment, time.UnixMicro(micros).UTC()}, ok && err == nil && len(ended) == microDigits
}

// microDigits is how many digits the microseconds since 1970 have, until 2286.
const microDigits = 16

func (s Stored) line() string {
	return fmt.Sprintf("%s %0*d\n", s.Segment, microDigits, s.Ended.UnixMicro())
}

// note adds what was stored. What is known already stays as it is.
func (j *journal) note(s ...Stored) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var text strings.Builder
	for _, s := range s {
		at, known := slices.BinarySearchFunc(j.list, s, bySegment)
		if !known {
			j.list = slices.Insert(j.list, at, s)
			text.WriteString(s.line())
		}
	}
	if text.Len() == 0 {
		return nil
	}
	file, err := os.OpenFile(j.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + text.String()) // after a line that was cut short, too
	return errors.Join(err, file.Close())
}

// replace has the journal be this.
func (j *journal) replace(list []Stored) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var text strings.Builder
	for _, s := range list {
		text.WriteString(s.line())
	}
	if err := os.WriteFile(j.path+".new", []byte(text.String()), 0o600); err != nil {
		return err
	}
	j.list = slices.Clone(list)
	return os.Rename(j.path+".new", j.path)
}

// stored is what the journal has, ascending.
func (j *journal) stored() []Stored {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.list)
}

// last is the newest segment that was stored.
func (j *journal) last() (s Stored, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.list) == 0 {
		return s, false
	}
	return j.list[len(j.list)-1], true
}
