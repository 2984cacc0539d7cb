package app

import (
	"strings"
	"testing"
)

// A name that several have names none of them.
func TestNamed(t *testing.T) {
	list := Sequence([]string{"shop", "orders", "shop"}, nil)
	self := func(name string) string { return name }
	if found, err := Named(list, "orders", "database", self); err != nil || found != "orders" {
		t.Errorf("orders: %q, %v", found, err)
	}
	for name, says := range map[string]string{"shop": `"shop" is the name of 2 things`, "nosuch": "there is no database"} {
		if _, err := Named(list, name, "database", self); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
