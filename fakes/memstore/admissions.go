package memstore

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// Admit implements ports.Admissions.
func (s *Store) Admit(ctx context.Context, r ports.AdmissionRequest) (ports.Admission, error) {
	if ctx.Err() != nil {
		return ports.Admission{}, ctx.Err()
	}
	now := s.committed.Load()
	key, ok := now.keys.get(r.Credential.ID)
	if !ok {
		return ports.Admission{}, ports.ErrNoRow
	}
	owner, _ := now.accounts.get(key.AccountID)
	a := ports.Admission{Key: s.withLastUse(key), Account: owner, Maintenance: now.maintenance}
	if key.Accepts(r.Credential.Hash) {
		a.Decision = s.take("key/"+string(key.ID)+"/"+string(r.Class), r.Limit, r.Now)
	}
	return a, nil
}

// Take implements ports.Admissions.
func (s *Store) Take(
	ctx context.Context, bucket string, l ratelimit.Limit, now time.Time,
) (ratelimit.Decision, error) {
	if ctx.Err() != nil {
		return ratelimit.Decision{}, ctx.Err()
	}
	return s.take(bucket, l, now), nil
}

// take decides by a bucket that is never fuller than full, even where the clock was moved back.
func (s *Store) take(bucket string, l ratelimit.Limit, now time.Time) ratelimit.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	tat := s.buckets[bucket]
	if full := now.Add(l.Period); tat.After(full) {
		tat = full
	}
	d := ratelimit.Decide(l, tat, now)
	s.buckets[bucket] = d.TAT
	return d
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
	for bucket, tat := range s.buckets {
		if !tat.After(now) {
			delete(s.buckets, bucket)
		}
	}
	return nil
}
