package archive

import (
	"fmt"
	"regexp"
	"strconv"
)

// Segment is the name of a file of WAL: the timeline, and the number of the segment in two parts, of eight hexadecimal digits
// each.
type Segment string

// segmentPattern is that of whole segments.
var segmentPattern = regexp.MustCompile(`^[0-9A-F]{24}$`)

// ParseSegment reads the name of a whole segment.
func ParseSegment(name string) (Segment, bool) {
	return Segment(name), segmentPattern.MatchString(name)
}

// pushable is what PostgreSQL hands over: segments, the last one of an old timeline, which is partial, histories of timelines,
// and labels of backups.
var pushable = regexp.MustCompile(`^([0-9A-F]{24}(\.partial|\.[0-9A-F]{8}\.backup)?|[0-9A-F]{8}\.history)$`)

// perLog is how many segments a number of the second part has before it begins anew.
func perLog(size int64) uint64 { return 1 << 32 / uint64(size) }

// timeline is that of the segment.
func (s Segment) timeline() string { return string(s[:8]) }

// number counts the segments of all timelines from the first one.
func (s Segment) number(size int64) uint64 {
	log, _ := strconv.ParseUint(string(s[8:16]), 16, 32) // the pattern holds
	low, _ := strconv.ParseUint(string(s[16:]), 16, 32)
	return log*perLog(size) + low
}

// next is the segment that follows on the same timeline.
func (s Segment) next(size int64) Segment {
	n := s.number(size) + 1
	return Segment(fmt.Sprintf("%s%08X%08X", s.timeline(), n/perLog(size), n%perLog(size)))
}
