package histories

import (
	"context"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// sessionCache is a store that answers of sessions what it has read shortly before.
type sessionCache struct {
	ports.Store

	mu    sync.Mutex
	known map[token.Hash]cachedSession
}

type cachedSession struct {
	ports.SessionEntry
	at time.Time
}

// View implements ports.Store.
func (s *sessionCache) View(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, cachedTx{tx, s}) })
}

type cachedTx struct {
	ports.Tx
	cache *sessionCache
}

func (t cachedTx) Sessions() ports.Sessions { return cachedSessions{t.Tx.Sessions(), t.cache} }

type cachedSessions struct {
	ports.Sessions
	cache *sessionCache
}

func (s cachedSessions) ByToken(ctx context.Context, hash token.Hash) (ports.SessionEntry, error) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	if known, is := s.cache.known[hash]; is && time.Since(known.at) < 10*time.Millisecond {
		return known.SessionEntry, nil
	}
	found, err := s.Sessions.ByToken(ctx, hash)
	if err == nil {
		s.cache.known[hash] = cachedSession{found, time.Now()}
	}
	return found, err
}

// oneEnds is a store in which only one other session ends where all others are to.
type oneEnds struct{ ports.Store }

// Update implements ports.Store.
func (s oneEnds) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, oneEndsTx{tx}) })
}

type oneEndsTx struct{ ports.Tx }

func (t oneEndsTx) Sessions() ports.Sessions { return oneEndsSessions{t.Tx.Sessions()} }

type oneEndsSessions struct{ ports.Sessions }

func (s oneEndsSessions) EndAll(ctx context.Context, user id.UserID, but id.SessionID, now time.Time) error {
	all, err := s.Of(ctx, user)
	for _, one := range all {
		if closed, over := one.Closed(now); over == nil && one.ID != but {
			return s.Save(ctx, closed)
		}
	}
	return err
}
