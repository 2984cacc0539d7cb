package guard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhoHoldsTooManyLocks(t *testing.T) {
	const most, each = 1000, 64
	twenty := func(locks int) (all []holder) {
		for pid := range int64(20) {
			all = append(all, holder{pid: pid + 1, account: "mallory", locks: locks})
		}
		return all
	}
	for name, c := range map[string]struct {
		all    []holder
		sample bool
		want   []int64
	}{
		"nobody":                              {nil, false, nil},
		"one session":                         {[]holder{{1, "mallory", 1001, false}, {2, "ada", 90, false}}, false, []int64{1}},
		"one session that holds what all may": {[]holder{{1, "mallory", 1000, false}}, false, nil},
		"many sessions that hold what each may": {
			twenty(60), false, nil,
		},
		"many sessions of one account: as few as is enough": {twenty(70), false, []int64{20, 19, 18, 17, 16, 15}},
		"of a sample, all of the account that holds most that hold more than each may": {
			append(twenty(300)[:4], holder{21, "mallory", 64, false}, holder{22, "ada", 250, false}, holder{23, "eve", 600, false}),
			true,
			[]int64{1, 2, 3, 4},
		},
		"the account that holds most, not the largest session": {
			[]holder{{1, "mallory", 350, false}, {2, "mallory", 340, false}, {3, "ada", 400, false}}, false, []int64{1},
		},
		"accounts in turn": {
			[]holder{{1, "mallory", 900, false}, {2, "eve", 800, false}, {3, "ada", 300, false}}, false, []int64{1, 2},
		},
		"one that is ending": {[]holder{{1, "mallory", 5000, true}, {2, "ada", 500, false}}, false, nil},
		"another of the account that has one that is ending": {
			[]holder{{1, "mallory", 5000, true}, {2, "mallory", 400, false}, {3, "ada", 700, false}}, false, []int64{2},
		},
		"one that does not end, and nobody is large besides": {
			[]holder{{1, "mallory", 5000, false}, {2, "ada", 64, false}}, false, []int64{1},
		},
	} {
		if diff := cmp.Diff(c.want, excess(c.all, c.sample, most, each)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
