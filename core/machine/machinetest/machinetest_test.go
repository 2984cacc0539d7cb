package machinetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

type (
	light string
	press string
)

var (
	lights  = []light{"on", "off"}
	presses = []press{"turn_on", "turn_off"}
	moves   = map[light]map[press]light{"on": {"turn_on": "on", "turn_off": "off"}, "off": {"turn_on": "on"}}
)

// lamp is a sound machine with one cell replaced.
func lamp(from light, on press, cell machine.Cell[light]) machine.Table[light, press] {
	table := machine.Table[light, press]{
		"on":  {"turn_on": machine.To[light]("on"), "turn_off": machine.To[light]("off")},
		"off": {"turn_on": machine.To[light]("on"), "turn_off": machine.Refuse[light](fault.MemberConflict)},
	}
	if table[from] == nil {
		table[from] = maps.Clone(table["on"])
	}
	table[from][on] = cell
	return table
}

// heard keeps what a check reports.
type heard []string

func (h *heard) Helper() {}
func (h *heard) Errorf(format string, args ...any) {
	*h = append(*h, fmt.Sprintf(format, args...))
}

func (h *heard) is(t *testing.T, want ...string) {
	t.Helper()
	if !slices.EqualFunc(*h, want, strings.HasPrefix) {
		t.Errorf("%q instead of %q", *h, want)
	}
}

func TestComplete(t *testing.T) {
	on := machine.To[light]("on")
	for _, v := range []struct {
		table machine.Table[light, press]
		want  []string
	}{
		{lamp("off", "turn_on", on), nil},
		{machine.Table[light, press]{"on": {"turn_on": on, "turn_off": on}},
			[]string{"missing cells: [off/turn_on off/turn_off]", "1 rows for 2 states"}},
		{lamp("broken", "turn_on", on), []string{"3 rows for 2 states"}},
		{lamp("off", "smash", on), []string{"off: 3 cells for 2 events"}},
		{lamp("off", "turn_on", machine.To[light]("lost")), []string{`off/turn_on leads to "lost"`}},
		{lamp("off", "turn_on", machine.Refuse[light]("NO_CODE")), []string{"off/turn_on is refused with"}},
		{lamp("off", "turn_on", machine.Cell[light]{Code: fault.MemberConflict, Next: "on"}), []string{"off/turn_on is refused with"}},
		{lamp("off", "turn_on", machine.Cell[light]{Code: fault.MemberConflict, Effects: []string{"cool"}}),
			[]string{"off/turn_on is refused with"}},
	} {
		var h heard
		Complete(&h, v.table, lights, presses)
		h.is(t, v.want...)
	}
}

func TestMoves(t *testing.T) {
	for _, v := range []struct {
		table machine.Table[light, press]
		want  []string
	}{
		{lamp("on", "turn_on", machine.To[light]("on")), nil},
		{lamp("on", "turn_off", machine.To[light]("on")), []string{`on/turn_off leads to "on" instead of "off"`}},
		{lamp("on", "turn_off", machine.Refuse[light](fault.MemberConflict)), []string{`on/turn_off leads to "" instead of "off"`}},
		{lamp("off", "turn_off", machine.To[light]("off")), []string{`off/turn_off leads to "off" instead of a refusal`}},
		{lamp("off", "turn_off", machine.Refuse[light](fault.PlanLimit)), []string{`off/turn_off leads to "" instead of a refusal`}},
	} {
		var h heard
		Moves(&h, v.table, lights, presses, moves, fault.MemberConflict)
		h.is(t, v.want...)
	}
}
