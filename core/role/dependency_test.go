package role

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func dependencies(n int) []Dependency {
	list := make([]Dependency, n)
	for i := range list {
		list[i] = Dependency{Kind: OwnedDependency, ObjectType: "table", Schema: "public", Name: fmt.Sprint("t", i), Identity: "i"}
	}
	return list
}

func TestAnyDependency(t *testing.T) {
	if (Dependencies{}).Any() || !(Dependencies{List: dependencies(1)}).Any() || !(Dependencies{Truncated: true}).Any() {
		t.Error("what depends is not seen, or nothing is")
	}
}

func TestRefusalListsDependencies(t *testing.T) {
	cases := map[string]struct {
		given     Dependencies
		listed    int
		truncated bool
	}{
		"one": {Dependencies{List: dependencies(1)}, 1, false}, "twenty": {Dependencies{List: dependencies(20)}, 20, false},
		"the first twenty": {Dependencies{List: dependencies(20), Truncated: true}, 20, true},
		"too many":         {Dependencies{List: dependencies(21)}, 20, true}, "hidden ones": {Dependencies{Truncated: true}, 0, true},
	}
	for name, c := range cases {
		var refusal *fault.Error
		if err := c.given.Refusal(true); !errors.As(err, &refusal) || refusal.Code != fault.RoleDependencies {
			t.Fatalf("%s: %v", name, err)
		}
		list, ok := refusal.Extra["dependencies"].([]Dependency)
		if !ok || list == nil || len(list) != c.listed || refusal.Extra["truncated"] != c.truncated {
			t.Errorf("%s: %v", name, refusal.Extra)
		}
		if len(list) > 0 && list[0] != c.given.List[0] {
			t.Errorf("%s: begins with %+v", name, list[0])
		}
	}
}

func TestRefusalWithoutList(t *testing.T) {
	var refusal *fault.Error
	if err := (Dependencies{List: dependencies(3)}).Refusal(false); !errors.As(err, &refusal) || refusal.Extra != nil {
		t.Errorf("%+v", refusal)
	}
}

func TestDependencyOnTheWire(t *testing.T) {
	d := Dependency{Kind: OtherDatabase, ObjectType: "database", Name: "shop", Identity: "shop"}
	text, err := json.Marshal(d)
	const want = `{"kind":"other_database","objectType":"database","schema":"","name":"shop","identity":"shop"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
