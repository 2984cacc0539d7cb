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
func (s Segment) timeline() Timeline {
	t, _ := strconv.ParseUint(string(s[:8]), 16, 32) // the pattern holds
	return Timeline(t)
}

// number counts the segments of all timelines from the first one.
func (s Segment) number(size int64) uint64 {
	log, low := s.parts()
	return log*perLog(size) + low
}

// parts are the two of its number.
func (s Segment) parts() (log, low uint64) {
	log, _ = strconv.ParseUint(string(s[8:16]), 16, 32) // the pattern holds
	low, _ = strconv.ParseUint(string(s[16:]), 16, 32)
	return log, low
}

// next is the segment that follows on the same timeline.
func (s Segment) next(size int64) Segment { return segmentOf(s.timeline(), s.number(size)+1, size) }

// segmentOf is the segment of a number on a timeline.
func segmentOf(t Timeline, number uint64, size int64) Segment {
	return Segment(fmt.Sprintf("%08X%08X%08X", uint32(t), number/perLog(size), number%perLog(size)))
}

// The sizes of a segment that PostgreSQL takes, and the one that it has where nobody has chosen another.
const (
	leastSegment, mostSegment = 1 << 20, 1 << 30
	usualSegment              = 16 << 20
)

// sizeOf is that of a segment, as the names of some say it, which are ascending: by the last number before another first part, or
// by the highest.
func sizeOf(list []Stored) int64 {
	var before Segment
	var most uint64
	for _, s := range list {
		log, low := s.Segment.parts()
		if before != "" && low == 0 {
			if last, highest := before.parts(); last+1 == log {
				if size := int64(1<<32) / int64(highest+1); isSegmentSize(size) {
					return size
				}
			}
		}
		before, most = s.Segment, max(most, low)
	}
	size := int64(usualSegment)
	for ; size > leastSegment && most >= perLog(size); size /= 2 {
	}
	return size
}

// isSegmentSize reports whether PostgreSQL takes that: a power of 2.
func isSegmentSize(size int64) bool {
	return size >= leastSegment && size <= mostSegment && size&(size-1) == 0
}
