package conformance

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/ports"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Entropy is the suite of ports.Entropy.
func Entropy(t *testing.T, newEntropy func() ports.Entropy) {
	t.Run("never repeats itself", func(t *testing.T) { entropyIsUnique(t, newEntropy()) })
	t.Run("gives as many characters as asked for", func(t *testing.T) { entropyHasLength(t, newEntropy()) })
	t.Run("prefers no character and no bit", func(t *testing.T) { entropyIsUniform(t, newEntropy()) })
}

func entropyIsUnique(t *testing.T, e ports.Entropy) {
	const each, workers = 2000, 4
	var mu sync.Mutex
	seen := map[string]bool{}
	var running sync.WaitGroup
	draw := func() {
		for range each {
			id, salt, seed := e.UUID(), e.Salt(), e.Seed()
			text := e.Base62(22)
			mu.Lock()
			for _, value := range []string{string(id[:]), string(salt[:]), text, string(seed[:16]), string(seed[16:])} {
				seen[value] = true
			}
			mu.Unlock()
		}
	}
	for range workers {
		running.Go(draw)
	}
	running.Wait()
	if len(seen) != 5*each*workers {
		t.Errorf("%d of %d values differ", len(seen), 5*each*workers)
	}
}

func entropyHasLength(t *testing.T, e ports.Entropy) {
	for n := range 300 {
		text := e.Base62(n)
		if len(text) != n || strings.Trim(text, base62) != "" {
			t.Fatalf("%d characters were asked for, got %q", n, text)
		}
	}
}

// entropyIsUniform bounds the chi-squared statistic: its mean is the number of classes less one, its variance twice that.
// Eight standard deviations away a fair source is practically never; taking bytes modulo 62 is far beyond.
func entropyIsUniform(t *testing.T, e ports.Entropy) {
	const drawn = 500_000
	characters := map[rune]int{}
	for _, c := range e.Base62(drawn) {
		characters[c]++
	}
	bits := map[int]int{}
	for range drawn / 128 {
		for i, b := range e.UUID() {
			for bit := range 8 {
				bits[8*i+bit] += int(b >> bit & 1)
			}
		}
	}
	if x, limit := chiSquared(characters, drawn, len(base62)), 61+8*math.Sqrt(2*61); x > limit {
		t.Errorf("the characters are not equally likely: chi-squared %.0f, at most %.0f", x, limit)
	}
	for bit, ones := range bits {
		mean, deviation := float64(drawn/128)/2, math.Sqrt(float64(drawn/128))/2
		if math.Abs(float64(ones)-mean) > 8*deviation {
			t.Errorf("bit %d is set %d times of %d", bit, ones, drawn/128)
		}
	}
	if len(bits) != 128 {
		t.Errorf("%d bits of 128 are ever set", len(bits))
	}
}

func chiSquared(seen map[rune]int, drawn, classes int) (x float64) {
	expected := float64(drawn) / float64(classes)
	for _, c := range base62 {
		d := float64(seen[c]) - expected
		x += d * d / expected
	}
	return x
}
