package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Live tells of changes.
type Live interface {
	// Watch returns what is told to a person of databases, whom it has seen to see them. Stop ends it. A channel that is closed ends
	// the stream.
	Watch(ctx context.Context, c access.Caller, list []id.DatabaseID) (changed <-chan struct{}, stop func(), err error)
	// StillSees returns an error if the person's session has ended, or one of the databases is out of sight by now.
	StillSees(ctx context.Context, c access.Caller, list []id.DatabaseID) error
}

const (
	liveName = "live"
	// beat is how often a stream says something although nothing has changed, which also finds the end of a session.
	beat = 20 * time.Second
	// streamLife is how long a stream lasts; then the browser opens another one, perhaps at another host.
	streamLife = time.Hour
	// MaxWatched is how many databases a page watches.
	MaxWatched = 50
	// Streams bound the memory of a host.
	maxStreamsOfPerson = 20
	maxStreamsOfAll    = 2000
)

// watchParameter names the databases of a stream.
const watchParameter = "of"

// live is the stream of a page: events without content, at each of which the page reads itself again. So a page shows the same
// with and without it, and nothing is sent that the page itself would not show.
func (s *Server) live(r *Request) (Answer, error) {
	var list []id.DatabaseID
	for _, of := range r.http.URL.Query()[watchParameter] {
		db, err := id.Parse[id.DatabaseID](of)
		if err != nil {
			return nil, errNoPage()
		}
		list = append(list, db)
	}
	if len(list) == 0 || len(list) > MaxWatched {
		return nil, fault.Invalid(watchParameter, "names from 1 to %d databases", MaxWatched)
	}
	ended, leave, ok := s.streams.enter(r.Caller.UserID())
	if !ok {
		return nil, fault.New(fault.RateLimited, "too many pages are open")
	}
	changed, stop, err := s.cfg.Live.Watch(r.ctx, r.Caller, list)
	if err != nil {
		leave()
		return nil, err
	}
	return stream{list, changed, ended, func() { stop(); leave() }}, nil
}

type stream struct {
	list    []id.DatabaseID
	changed <-chan struct{}
	ended   <-chan struct{} // all streams
	stop    func()
}

// write implements Answer.
func (t stream) write(r *Request) error {
	defer t.stop()
	s := r.server
	to := paced{r.out, http.NewResponseController(r.out)}
	say := func(text string) error {
		to.begin()
		defer to.end()
		if _, err := r.out.Write([]byte(text)); err != nil {
			return err
		}
		return to.control.Flush()
	}
	r.out.Header().Set("Content-Type", "text/event-stream")
	r.out.Header().Set("X-Accel-Buffering", "no") // a proxy passes each event on at once
	if say("retry: 3000\n\n") != nil || r.http.Method == http.MethodHead {
		return nil
	}
	tick, life := time.NewTicker(beat), time.NewTimer(streamLife)
	defer tick.Stop()
	defer life.Stop()
	for {
		event := "event: beat\ndata:\n\n"
		select {
		case <-r.http.Context().Done():
			return nil
		case <-t.ended:
			return nil
		case <-life.C:
			return nil
		case <-tick.C:
		case _, open := <-t.changed:
			if !open {
				return nil
			}
			event = "event: changed\ndata:\n\n"
		}
		ctx, cancel := context.WithTimeout(r.http.Context(), beat)
		err := s.cfg.Live.StillSees(ctx, r.Caller, t.list)
		cancel()
		var refused *fault.Error
		switch {
		case errors.As(err, &refused):
			_ = say("event: gone\ndata:\n\n")
			return nil
		case err != nil:
			continue // nobody can say at the moment
		}
		if say(event) != nil {
			return nil // the client has left
		}
	}
}

// streams counts the streams of a host.
type streams struct {
	mu       sync.Mutex
	ofPerson map[id.UserID]int
	all      int
	over     chan struct{}
	end      sync.Once
}

func newStreams() *streams {
	return &streams{ofPerson: map[id.UserID]int{}, over: make(chan struct{})}
}

func (s *streams) enter(of id.UserID) (ended <-chan struct{}, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreamsOfAll || s.ofPerson[of] >= maxStreamsOfPerson {
		return nil, nil, false
	}
	s.all++
	s.ofPerson[of]++
	return s.over, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.ofPerson[of]--; s.ofPerson[of] == 0 {
			delete(s.ofPerson, of)
		}
	}, true
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// endAll ends all streams, and each one as it begins: its browser then asks another host.
func (s *streams) endAll() { s.end.Do(func() { close(s.over) }) }

// liveURL is the stream of a page about databases; empty for none.
func liveURL(list []id.DatabaseID) string {
	if len(list) == 0 || len(list) > MaxWatched {
		return ""
	}
	query := ""
	for _, db := range list {
		query += fmt.Sprintf("&%s=%s", watchParameter, db)
	}
	return "/live?" + query[1:]
}
