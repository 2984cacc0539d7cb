package memstore

import (
	"context"
	"maps"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// Find implements ports.Admissions.
func (s *Store) Find(ctx context.Context, key id.KeyID) (ports.Admission, error) {
	if ctx.Err() != nil {
		return ports.Admission{}, ctx.Err()
	}
	now := s.committed.Load()
	k, ok := now.keys.get(key)
	if !ok {
		return ports.Admission{}, ports.ErrNoRow
	}
	owner, _ := now.accounts.get(k.AccountID)
	return ports.Admission{Key: s.withLastUse(k), Account: owner, Maintenance: now.maintenance}, nil
}

// FindForRead implements ports.Admissions.
func (s *Store) FindForRead(ctx context.Context, key id.KeyID, db id.DatabaseID) (ports.Admission, error) {
	a, err := s.Find(ctx, key)
	if err != nil {
		return a, err
	}
	now, of := s.committed.Load(), a.Account
	if r, ok := now.databases.get(db); ok && r.AccountID == of.ID {
		a.Database = now.record(r).Summary()
	}
	a.Key.Label, a.Key.CreatedAt, a.Key.LastUsedAt = "", time.Time{}, nil
	a.Account = account.Account{ID: of.ID, Plan: of.Plan, Suspension: of.Suspension}
	a.Account.DatabaseBytes = of.DatabaseBytes
	return a, nil
}

// Lease implements ports.Admissions.
func (s *Store) Lease(ctx context.Context, r ports.LeaseRequest) (ports.Admission, ratelimit.Grant, error) {
	a, err := s.Find(ctx, r.Credential.ID)
	if err != nil || !a.Key.Admits(r.Credential.Hash, r.Client, r.Now) {
		return a, ratelimit.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return a, s.bucket(bucketOf(a.Key.ID, r.Class)).Lease(r.Limit, r.Ask, r.Now), nil
}

// Reserve implements ports.Admissions.
func (s *Store) Reserve(ctx context.Context, r ports.Reservation) (ports.Admission, ratelimit.Decision, error) {
	a, err := s.Find(ctx, r.Credential.ID)
	if err != nil || !a.Key.Admits(r.Credential.Hash, r.Client, r.Now) {
		return a, ratelimit.Decision{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := bucketOf(a.Key.ID, r.Class)
	w := s.windows[name]
	if w == nil {
		w = &window{}
		s.windows[name] = w
	}
	w.limit = r.Limit
	return a, w.Take(r.Limit, r.Now), nil
}

// window is a window with the limit that it was last asked under.
type window struct {
	ratelimit.Window
	limit ratelimit.Limit
}

// Return implements ports.Admissions.
func (s *Store) Return(ctx context.Context, rests []ports.Rest, now time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rests {
		s.bucket(bucketOf(r.Key, r.Class)).Return(r.Limit, r.Stretch, now)
	}
	return nil
}

// Take implements ports.Admissions.
func (s *Store) Take(
	ctx context.Context, bucket string, l ratelimit.Limit, now time.Time,
) (ratelimit.Decision, error) {
	if ctx.Err() != nil {
		return ratelimit.Decision{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, d := ratelimit.Begin(l, s.bucket(bucket).Lease(l, ratelimit.Ask{Requests: 1}, now), now)
	return d, nil
}

func bucketOf(k id.KeyID, c ratelimit.Class) string { return "key/" + string(k) + "/" + string(c) }

// bucket returns the bucket of a name; a new one is full.
func (s *Store) bucket(name string) *ratelimit.Bucket {
	b := s.buckets[name]
	if b == nil {
		b = &ratelimit.Bucket{}
		s.buckets[name] = b
	}
	return b
}

// Touch implements ports.Admissions.
func (s *Store) Touch(ctx context.Context, used map[id.KeyID]time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, at := range used {
		if at.After(s.used[key]) {
			s.used[key] = at
		}
	}
	return nil
}

// withLastUse adds what Touch has stored.
func (s *Store) withLastUse(key account.Key) account.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.used[key.ID]; ok && (key.LastUsedAt == nil || key.LastUsedAt.Before(at)) {
		key.LastUsedAt = &at
	}
	return key
}

// Sweep implements ports.Admissions.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.buckets, func(_ string, b *ratelimit.Bucket) bool { return b.Forgettable(now) })
	maps.DeleteFunc(s.windows, func(_ string, w *window) bool { return w.Forgettable(w.limit, now) })
	return nil
}
