package pgversion_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/pgversion"
)

func TestWhatIsSupported(t *testing.T) {
	for version, supported := range map[int]bool{
		-1: false, 0: false, 15: false, 16: true, 17: true, 18: true, 19: false, 160014: false,
	} {
		err := pgversion.Check(version)
		if pgversion.Supported(version) != supported || (err == nil) != supported ||
			err != nil && !fault.Has(err, fault.ValidationError) {
			t.Errorf("%d: %v", version, err)
		}
	}
	if !pgversion.Supported(pgversion.Default) {
		t.Error("the default is not supported")
	}
}

func TestARefusalNamesWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		there []int
		says  string
	}{{[]int{16}, "servers of 16"}, {[]int{16, 17}, "servers of 16 and 17"}, {[]int{16, 17, 18}, "servers of 16, 17 and 18"}} {
		said := pgversion.ErrNowhere(15, c.there).Error()
		if !strings.HasSuffix(said, c.says) || !strings.Contains(said, "PostgreSQL 15") {
			t.Errorf("%v: %s", c.there, said)
		}
	}
}
