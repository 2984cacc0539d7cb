package sidecar

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/backup"
)

// A name of a customer's is on one line in pg_dump's comment, and cannot say who owns the object.
func TestOwnersComeFromTheComment(t *testing.T) {
	const text = "-- Name: x; Owner: postgres; Type: ACL; Schema: s; Owner: rt\n\nGRANT SELECT ON TABLE s.x TO shop;\n" +
		"GRANT SELECT ON TABLE s.y TO shop;\n\n--\n-- Name: z; Type: ACL; Schema: s; Owner: shop\n--\n\n" +
		"GRANT SELECT ON TABLE s.z TO rt;"
	steps, err := planned(text, testRoles)
	var as []string
	for _, s := range steps {
		if strings.HasPrefix(s.sql, "GRANT SELECT") {
			as = append(as, s.as)
		}
	}
	if err != nil || !slices.Equal(as, []string{"rt2", "rt2", "shop"}) {
		t.Error(as, err)
	}
}

// Of a long statement the beginning is parsed, and all of it is compared.
func TestLongStatements(t *testing.T) {
	expression := "USING ((a = '" + strings.Repeat("x", long) + "'));"
	for _, c := range []struct {
		sidecar, ofCopy string
		same            bool
	}{
		{"CREATE POLICY p ON s.t TO rt, gone " + expression, "CREATE POLICY p ON s.t TO rt2 " + expression, true},
		{"CREATE POLICY p ON s.t TO rt, gone " + expression, "CREATE POLICY p ON s.t TO rt2, shop " + expression, false},
		{"CREATE POLICY p ON s.t TO gone " + expression, "", true},
		{"CREATE VIEW v AS " + expression, "CREATE VIEW v AS " + expression, true},
		{"CREATE VIEW v AS " + expression, "CREATE VIEW v AS " + strings.Replace(expression, "x'", "y'", 1), false},
	} {
		found, err := testRoles.Compare(strings.NewReader(c.sidecar), strings.NewReader(c.ofCopy))
		if err != nil || (len(found) == 0) != c.same {
			t.Errorf("%.40s, %.40s: %v %v", c.sidecar, c.ofCopy, found, err)
		}
	}
	grant := "GRANT SELECT ON TABLE s." + strings.Repeat("x", long) + " TO rt;"
	if _, err := planned(grant, testRoles); !errors.Is(err, errNotUnderstood) {
		t.Error("a long grant:", err)
	}
}

// An error of the one who reads the file is not one of the sidecar.
func TestUnreadable(t *testing.T) {
	broken := errors.New("broken")
	_, err := testRoles.Compare(io.MultiReader(strings.NewReader("SET a = 1; GRANT"), failing{broken}), strings.NewReader(""))
	if at := new(StatementError); !errors.Is(err, broken) || errors.As(err, &at) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestSummary(t *testing.T) {
	list := []Difference{{"TABLE a", "missing"}, {"VIEW b", "different"}}
	if got, want := backup.Summary(list), "TABLE a is missing; VIEW b is different"; got != want {
		t.Error(got)
	}
	if got := backup.Summary(slices.Repeat(list, 4)); !strings.HasSuffix(got, "; and 5 more") {
		t.Error(got)
	}
}
