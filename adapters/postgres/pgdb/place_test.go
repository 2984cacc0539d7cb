package pgdb

import (
	"slices"
	"strings"
	"testing"
)

func TestWhereTheMetadataAre(t *testing.T) {
	for url, want := range map[string]struct {
		hosts []string
		place string
	}{
		"postgres://u:secret@db1.example/pgherd":                {[]string{"db1.example"}, "database pgherd at db1.example:5432"},
		"host=/run/postgresql user=u password=secret dbname=x":  {nil, "database x at /run/postgresql:5432"},
		"host=db1 hostaddr=10.0.0.7 password=secret dbname=x":   {[]string{"db1", "10.0.0.7"}, "database x at db1:5432"},
		"postgres://u:secret@db1:notaport/pgherd":               {nil, "the URL's database"},
		"host=db1,db2 port=1,2 user=u dbname=x password=secret": {[]string{"db1", "db2"}, "database x at db1:1, db2:2"},
		"postgres://u:secret@db1:1,db2/x":                       {[]string{"db1", "db2"}, "database x at db1:1, db2:5432"},
	} {
		c := Config{URL: url}
		if hosts, place := c.Hosts(), c.Place(); !slices.Equal(hosts, want.hosts) || place != want.place ||
			strings.Contains(place, "secret") {
			t.Errorf("%s: %q, %q", url, hosts, place)
		}
	}
}
