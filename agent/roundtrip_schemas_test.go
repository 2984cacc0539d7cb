package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// schemas are those of packages that others have written, and what is particular about each.
var schemas = []struct {
	name  string
	model database.RoleModel
}{
	{"icingadb", database.Managed}, // domains, enums, functions and an extension
	{"pdns", database.SingleLogin}, // little, in a database with a single login
	{"bacula", database.Managed},   // what was made and altered over the years
	{"kea", database.Managed},      // hundreds of functions and triggers
	{"roundcube", database.Managed},
	{"zabbix", database.Managed}, // a quarter of a million rows, with images
}

func TestRoundTripsOfSchemas(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	folder := check.Must(toolchain.Folder(toolchain.Schemas))(t)
	fill := string(check.Must(os.ReadFile("testdata/roundtrip/fill.sql"))(t))
	for _, schema := range sample.OneIn(t, len(schemas), schemas) {
		t.Run(schema.name, func(t *testing.T) {
			w := s.Made(t, schema.model)
			asOwner(t, s, w, "", "-o", os.DevNull, "-f", filepath.Join(folder, schema.name+".sql"))
			asOwner(t, s, w, fill)
			wantRows(t, s, w)
			roundTrip(t, s, w)
		})
	}
}

// wantRows demands that most tables have rows.
func wantRows(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	asOwner(t, s, w, `DO $$
		DECLARE relation regclass; filled boolean; empty int := 0; tables int := 0;
		BEGIN
			FOR relation IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
				EXECUTE format('SELECT EXISTS (SELECT FROM %s)', relation) INTO filled;
				empty := empty + (NOT filled)::int; tables := tables + 1;
			END LOOP;
			ASSERT empty < tables / 2.0, empty || ' of ' || tables || ' tables are empty';
		END $$`)
}
