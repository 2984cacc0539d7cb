// Package fakeissuer implements ports.TokenVerifier for tests and scenarios: every https URL is an issuer, and its tokens can be
// read by anybody.
package fakeissuer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/ports"
)

// Issuers are all issuers. It is safe for concurrent use.
type Issuers struct {
	mu      sync.Mutex
	keys    map[string]int // how often the key was changed
	stopped map[string]bool
	silent  map[string]chan struct{} // closed when it answers again
}

var _ ports.TokenVerifier = (*Issuers)(nil)

// New makes issuers that answer.
func New() *Issuers {
	return &Issuers{keys: map[string]int{}, stopped: map[string]bool{}, silent: map[string]chan struct{}{}}
}

// Token is a token of the issuer that the claims name, signed with its key of now.
func (i *Issuers) Token(c citoken.Claims) string {
	c.Signed = [32]byte{}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // claims are texts and times
	}
	signed := "fake." + base64.RawURLEncoding.EncodeToString(text)
	i.mu.Lock()
	defer i.mu.Unlock()
	return signed + "." + i.signature(c.Issuer, signed)
}

func (i *Issuers) signature(issuer, signed string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i.keys[issuer]) + issuer + signed))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Rotate changes the key of an issuer.
func (i *Issuers) Rotate(issuer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[issuer]++
}

// Stop ends an issuer.
func (i *Issuers) Stop(issuer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped[issuer] = true
}

// Silence has an issuer answer nobody until release is called.
func (i *Issuers) Silence(issuer string) (release func()) {
	over := make(chan struct{})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.silent[issuer] = over
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.silent, issuer)
		close(over)
	}
}

// Verify implements ports.TokenVerifier.
func (i *Issuers) Verify(ctx context.Context, token string, issuers []string) (citoken.Claims, error) {
	signed, signature, parted := cutLast(token)
	text, encoded := strings.CutPrefix(signed, "fake.")
	payload, err := base64.RawURLEncoding.Strict().DecodeString(text)
	var c citoken.Claims
	if !parted || !encoded || err != nil || json.Unmarshal(payload, &c) != nil || !slices.Contains(issuers, c.Issuer) {
		return citoken.Claims{}, citoken.NotSigned
	}
	if err := i.answers(ctx, c.Issuer); err != nil {
		return citoken.Claims{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if signature != i.signature(c.Issuer, signed) {
		return citoken.Claims{}, citoken.NotSigned
	}
	c.Signed = sha256.Sum256([]byte(signed))
	return c, nil
}

func cutLast(token string) (before, after string, found bool) {
	at := strings.LastIndexByte(token, '.')
	if at < 0 {
		return "", "", false
	}
	return token[:at], token[at+1:], true
}

// answers waits for an issuer that is silent.
func (i *Issuers) answers(ctx context.Context, issuer string) error {
	i.mu.Lock()
	stopped, silent := i.stopped[issuer], i.silent[issuer]
	i.mu.Unlock()
	switch {
	case stopped:
		return citoken.NotAsked
	case silent == nil:
		return nil
	}
	select {
	case <-silent:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
