package archive

import (
	"bytes"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// trimAhead trims the segment after one that was given to the server, while it replays that.
func (f *feed) trimAhead(given string) {
	if segment, whole := ParseSegment(given); whole {
		folder := filepath.Join(f.side.dir, feedFolder)
		_ = trim(f.engine.Ahead(folder, segment.next(f.side.archive.segmentSize()))) // it may not have come; it is as good untrimmed
	}
}

// zeros is how much is looked at, and given back, at a time.
var zeros = make([]byte, 1<<20)

// trim gives the disk's room for the zeros at the end of a file back: that is most of a segment that ended early. They are read
// as before, and never get as far as the disk.
func trim(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer file.Close() // nothing was written
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	chunk, from := make([]byte, len(zeros)), info.Size()
	for from >= int64(len(zeros)) {
		if _, err := file.ReadAt(chunk, from-int64(len(zeros))); err != nil {
			return err
		}
		if !bytes.Equal(chunk, zeros) {
			break
		}
		from -= int64(len(zeros))
	}
	if from == info.Size() {
		return nil
	}
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, info.Size()-from)
}
