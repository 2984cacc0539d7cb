package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
)

// feed gives a server beside the segments that it replays. It has the engine fetch many at a time, ahead of the replay, into a
// folder of that server: a program for each segment would take ten times as long.
type feed struct {
	side   *Side
	engine Engine
	ahead  *batch // the last one; nil: there was none
	end    context.CancelFunc
	done   chan struct{}
	err    error // why a file could not be had, which ends the replay; is read after done
}

// batch are segments that are fetched together.
type batch struct {
	list []Segment // ascending, and not empty
	done chan struct{}
}

const (
	// feedFolder is where segments come, in the data directory of the server that replays them.
	feedFolder = "pgherd_segments"
	// A batch is twice as large as the one before: the first segments are there soon. All are of those that room was reserved for.
	firstBatch, largestBatch = 4, 64
	// feedTime bounds how long a file may take.
	feedTime = 2 * time.Minute
	feedPoll = 2 * time.Millisecond
)

// feedCommand is the restore_command: it asks the agent by a pipe, and moves what has come to where PostgreSQL wants it. To
// PostgreSQL status 1 is the end of the archive, and one above 125 ends the replay. So does the end of the agent, by that of its
// pipes.
const feedCommand = `echo "%f" >&4 && read -r from <&3 || exit 126; ` +
	`case "$from" in none) exit 1;; failed) exit 126;; esac; exec mv "$from" "%p"`

// startFeed starts to answer, and returns the files that the server is to have as its third and fourth.
func (s *Side) startFeed() (f *feed, theirs []*os.File, err error) {
	folder := filepath.Join(s.dir, feedFolder)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	if err := s.give(folder); err != nil {
		return nil, nil, err
	}
	answers, answered, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	asked, asks, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, answers.Close(), answered.Close())
	}
	ctx, end := context.WithCancel(context.Background()) // it lasts as long as the server
	f = &feed{side: s, engine: s.archive.ofServer(), end: end, done: make(chan struct{})}
	go f.run(ctx, asked, answered)
	return f, []*os.File{answers, asks}, nil
}

// stop returns once nothing is fetched any more.
func (f *feed) stop() error {
	f.end()
	<-f.done
	return f.err
}

// run answers until ctx ends, or nobody can ask any more.
func (f *feed) run(ctx context.Context, asked, answered *os.File) {
	defer close(f.done)
	defer func() {
		f.end()
		if f.ahead != nil {
			<-f.ahead.done
		}
		_ = answered.Close() // with which a server that waits ends, too
	}()
	context.AfterFunc(ctx, func() { _ = asked.Close() })
	for lines := bufio.NewScanner(asked); lines.Scan(); {
		from, err := f.get(ctx, lines.Text())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.err, from = err, "failed"
		case from == "":
			from = "none"
		}
		if _, err := io.WriteString(answered, from+"\n"); err != nil || f.err != nil {
			return
		}
		f.trimAhead(lines.Text())
	}
}

// get is where a file of the archive has come to; empty: the archive does not have it.
func (f *feed) get(ctx context.Context, name string) (path string, err error) {
	if !pushable.MatchString(name) {
		return "", fmt.Errorf("the server beside asked for %q", name)
	}
	folder := filepath.Join(f.side.dir, feedFolder)
	if segment, whole := ParseSegment(name); whole {
		f.fetchAhead(ctx, segment)
		if path := f.engine.Ahead(folder, segment); f.came(ctx, segment, path) {
			return path, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, feedTime)
	defer cancel()
	path = filepath.Join(folder, name)
	found, err := f.engine.Get(ctx, f.side.dir, name, path)
	if err != nil || !found {
		return "", err
	}
	return path, nil
}

// came waits for a segment that is being fetched, and reports whether it is there.
func (f *feed) came(ctx context.Context, segment Segment, path string) bool {
	coming := f.ahead != nil && slices.Contains(f.ahead.list, segment)
	for {
		over := !coming || f.ahead.over() // before the look
		if _, err := os.Lstat(path); err == nil || over {
			return err == nil
		}
		select {
		case <-f.ahead.done:
		case <-time.After(feedPoll):
		case <-ctx.Done():
			return false
		}
	}
}

func (b *batch) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// fetchAhead starts the next batch, unless one is being fetched.
func (f *feed) fetchAhead(ctx context.Context, asked Segment) {
	if f.ahead != nil && !f.ahead.over() {
		return
	}
	b := &batch{list: f.next(asked), done: make(chan struct{})}
	if len(b.list) == 0 {
		return
	}
	f.ahead = b
	go func() {
		defer close(b.done)
		ctx, cancel := context.WithTimeout(ctx, feedTime)
		defer cancel()
		err := f.engine.GetAhead(ctx, f.side.dir, filepath.Join(f.side.dir, feedFolder), b.list)
		if err != nil && ctx.Err() == nil { // each that has not come is fetched when it is asked for
			f.side.archive.log(f.side.moment).Warn("segments were not fetched ahead", zap.Error(err))
		}
	}()
}

// next are the segments of the next batch: those after the last one, or from the one that was asked for.
func (f *feed) next(asked Segment) (list []Segment) {
	span, size, most := f.side.span, f.side.archive.segmentSize(), firstBatch
	from := asked
	if f.ahead != nil {
		most = min(2*len(f.ahead.list), largestBatch)
		if last := f.ahead.list[len(f.ahead.list)-1]; asked <= last {
			from = last.next(size)
		}
	}
	if from.timeline() != span.Last.timeline() || from < span.First {
		return nil
	}
	for s := from; s <= span.Last && len(list) < most; s = s.next(size) {
		list = append(list, s)
	}
	return list
}

func (a *Archive) segmentSize() int64 {
	_, _, size := a.kept()
	return size
}
