package linear

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pgherd/pgherd/core/controlplane/roles"
)

// history is what clients saw of one database. It is safe for concurrent use.
type history struct {
	legacy bool // of a database with a single login
	moment atomic.Int64

	mu         sync.Mutex
	operations []porcupine.Operation
	numbers    map[string]map[string]int8
}

func newHistory(legacy bool) *history {
	return &history{legacy: legacy, numbers: map[string]map[string]int8{}}
}

// call records what a client learns from one call.
func (h *history) call(client int, do func() []fact) {
	begun := h.moment.Add(1)
	facts := do()
	ended := h.moment.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range facts {
		h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: f, Call: begun, Return: ended})
	}
}

// number gives each text of a kind a number, from 1 on; the empty text is 0.
func (h *history) number(kind, text string) int8 {
	if text == "" {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.numbers[kind] == nil {
		h.numbers[kind] = map[string]int8{}
	}
	n, known := h.numbers[kind][text]
	if !known {
		n = int8(len(h.numbers[kind]) + 1)
		h.numbers[kind][text] = n
	}
	return n
}

// shown is a role as an answer shows it. The generation of the role set counts where it was read together with the role.
func (h *history) shown(r roles.State) shown {
	return shown{
		id: h.number("role", string(r.ID)), key: h.number("key", string(r.Key)), name: h.number("name", r.DisplayName),
		ordinal: int8(r.Ordinal), status: r.Status, generation: int8(r.CredentialGeneration), set: int16(r.SetGeneration),
	}
}

// patience bounds one check. An exhausted one is no verdict. It is long for a busy machine: a check takes milliseconds.
const patience = time.Minute

func (h *history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(h.legacy), h.possible(), patience)
}

// possible leaves out what cannot have been: creates that were refused and may have been begun all the same, where nobody has
// ever seen a role of the key, or where it was made by another request. Every role that is not removed is seen in the end, and
// nobody removes one that was never seen.
func (h *history) possible() []porcupine.Operation {
	shownKeys, bodies := map[int8]bool{}, map[int8]int8{}
	for _, o := range h.operations {
		f := o.Input.(fact)
		for _, one := range append(f.list, f.shown) {
			shownKeys[one.key] = true
		}
		if f.is == created {
			bodies[f.key] = f.body
		}
	}
	return slices.DeleteFunc(slices.Clone(h.operations), func(o porcupine.Operation) bool {
		f := o.Input.(fact)
		body, known := bodies[f.key]
		return f.is == createTried && (!shownKeys[f.key] || known && body != f.body)
	})
}

// mustHold fails the test where no order of the calls explains what was seen.
func (h *history) mustHold(t *testing.T, seed uint64) {
	t.Helper()
	if verdict := h.check(); verdict != porcupine.Ok {
		t.Fatalf("seed %d: %s\n%s", seed, verdict, h)
	}
}

// inOrder is the history in the order of the calls.
func (h *history) inOrder() []porcupine.Operation {
	return slices.SortedStableFunc(slices.Values(h.possible()), func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
}

// String is the history in the order of the calls, then how far the best order explains it.
func (h *history) String() string {
	var b strings.Builder
	sorted := h.inOrder()
	for _, o := range sorted {
		fmt.Fprintf(&b, "%4d-%-4d client %d: %s\n", o.Call, o.Return, o.ClientId, o.Input)
	}
	_, info := porcupine.CheckOperationsVerbose(model(h.legacy), sorted, patience)
	for _, partial := range info.PartialLinearizationsOperations() {
		explained := map[string]bool{}
		longest := slices.MaxFunc(append(partial, nil), func(a, b []porcupine.Operation) int { return cmp.Compare(len(a), len(b)) })
		for _, o := range longest {
			explained[fmt.Sprint(o)] = true
		}
		b.WriteString("not explained:\n")
		for _, o := range sorted {
			if !explained[fmt.Sprint(o)] {
				fmt.Fprintf(&b, "%4d-%-4d client %d: %s\n", o.Call, o.Return, o.ClientId, o.Input)
			}
		}
	}
	return b.String()
}
