package model

import (
	"bytes"
	"sync"
)

// Canaries are secrets that may be found nowhere: every password, key and token that was made or told.
type Canaries struct {
	mu   sync.Mutex
	what map[string]string // of each, what it is
}

// shortest is the length from which a text is no coincidence.
const shortest = 16

// Add remembers a secret, and what it is.
func (c *Canaries) Add(secret, what string) {
	if len(secret) < shortest {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.what == nil {
		c.what = map[string]string{}
	}
	if _, known := c.what[secret]; !known {
		c.what[secret] = what
	}
}

// Count is how many are known.
func (c *Canaries) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.what)
}

// In says which secrets a text has: what each is, and how it begins.
func (c *Canaries) In(text []byte) (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for secret, what := range c.what {
		if bytes.Contains(text, []byte(secret)) {
			found = append(found, what+", which begins with "+secret[:4])
		}
	}
	return found
}
