package trace

import (
	"encoding/hex"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAnOperatorFindsTheTraceOfARequest(t *testing.T) {
	// printf %s 4Jx0vQ9mTz2LkPq8RsYw | sha256sum
	const sum = "7c978fa05d0cd7b62481f0805d2f5005d08d9c94ee03077ae24c498a8e506ae0"
	trace, span := Of("4Jx0vQ9mTz2LkPq8RsYw")
	if got := hex.EncodeToString(trace[:]) + hex.EncodeToString(span[:]); got != sum[:48] {
		t.Errorf("the trace is %s", got)
	}
}

func TestKept(t *testing.T) {
	const all = 20_000
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		kept := 0
		for i := range all {
			id, _ := Of(string(rune(i)) + "x")
			if id.Kept(share) {
				kept++
			}
		}
		if want := share * all; math.Abs(float64(kept)-want) > 0.01*all {
			t.Errorf("of %d, %d are kept at %v", all, kept, share)
		}
	}
}

func TestASmallerShareIsPartOfALarger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, _ := Of(rapid.String().Draw(t, "origin"))
		less, more := rapid.Float64Range(0, 1).Draw(t, "less"), rapid.Float64Range(0, 1).Draw(t, "more")
		if less <= more && id.Kept(less) && !id.Kept(more) {
			t.Errorf("kept at %v and not at %v", less, more)
		}
	})
}

func TestWithoutTracesNothingIsMade(t *testing.T) {
	ctx, statement := t.Context(), "SELECT"
	made := testing.AllocsPerRun(100, func() {
		ctx, ended := Tracer(Off{}).Begin(ctx, Span{Name: "request", At: Begins, Request: "r"})
		_, below := Tracer(Off{}).Begin(ctx, Span{Name: "statement", Statement: statement})
		below("", false)
		ended("200", false)
	})
	if made != 0 {
		t.Errorf("a request without traces makes %v objects", made)
	}
}
