package usage_test

import (
	"errors"
	"math/big"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

// day is when a day of the year begins.
func day(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)
}

const ada id.AccountID = "33333333-3333-4333-8333-333333333333"

func TestHold(t *testing.T) {
	december := day(time.December, 1)
	seen := func(db id.DatabaseID, hour time.Time, ms int64) usage.Sample {
		return usage.Sample{DatabaseID: db, Hour: hour, Activity: usage.Activity{SeenMs: ms, ActiveMs: 2 * ms}}
	}
	held, lines := usage.Hold([]usage.Sample{
		seen(shop, at(22, 0), 1_800_000), seen(shop, at(23, 0), 3_600_000), seen(shop, december, 3_600_000),
		seen(blog, at(22, 0), 3_600_000),
	}, nil, []usage.Holding{{DatabaseID: shop, AccountID: ada, Name: "shop", Bytes: 1 << 40, BackupBytes: 10, ConnectionCap: 60}})
	want := []usage.Line{
		{
			Month: day(time.November, 1), DatabaseID: shop, AccountID: ada, Name: "shop",
			Sums: usage.Sums{SeenMs: 5_400_000, ActiveMs: 10_800_000, ByteHours: 3 << 39, BackupByteHours: 15},
		},
		{
			Month: december, DatabaseID: shop, AccountID: ada, Name: "shop",
			Sums: usage.Sums{SeenMs: 3_600_000, ActiveMs: 7_200_000, ByteHours: 1 << 40, BackupByteHours: 10},
		},
	}
	if !reflect.DeepEqual(lines, want) || lines[0].DatabaseHours() != 1.5 || lines[0].ConnectionHours() != 3 {
		t.Errorf("%+v", lines)
	}
	if len(held) != 3 || held[2].Bytes != 1<<40 || held[2].BackupBytes != 10 || held[2].ConnectionCap != 60 {
		t.Errorf("%+v", held)
	}
	if sums := usage.SumOf(held); sums != lines[0].Plus(lines[1].Sums) {
		t.Errorf("%+v", sums)
	}
}

func TestWhatASampleShows(t *testing.T) {
	s := usage.Sample{Activity: usage.Activity{SeenMs: 1_800_000, ActiveMs: 4_500_000, WaitingMs: 900_000}}
	if s.Connections() != 2.5 || s.Waiting() != 0.5 || (usage.Sample{}).Connections() != 0 {
		t.Errorf("%v, %v", s.Connections(), s.Waiting())
	}
}

// The parts of an hour come to the weighted average of what they have, whatever their order, to a byte for each part, and what
// they come to never grows less.
func TestPartsOfAnHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hour usage.Sample
		sum, weight := new(big.Int), int64(0)
		parts := rapid.IntRange(1, 12).Draw(t, "parts")
		for range parts {
			part := usage.Sample{Bytes: rapid.Int64Range(0, 1<<60).Draw(t, "bytes")}
			part.SeenMs, part.ActivePeak = rapid.Int64Range(0, 300_000).Draw(t, "seen"), rapid.IntRange(0, 9).Draw(t, "peak")
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part.Bytes), big.NewInt(part.SeenMs)))
			weight += part.SeenMs
			before := hour.Sums()
			hour = hour.Plus(part)
			if hour.Sums().ByteHours < before.ByteHours {
				t.Fatalf("%+v after %+v", hour.Sums(), before)
			}
			if hour.ActivePeak < part.ActivePeak || hour.SeenMs != weight {
				t.Fatalf("%+v", hour)
			}
		}
		if weight == 0 {
			return
		}
		want := sum.Div(sum, big.NewInt(weight)).Int64()
		if hour.Bytes < want || hour.Bytes > want+int64(parts) {
			t.Fatalf("%d bytes, want %d", hour.Bytes, want)
		}
	})
}

func TestMonths(t *testing.T) {
	now := at(10, 0)
	november := day(time.November, 1)
	for text, want := range map[string]time.Time{
		"": november, "2026-11": november, "2027-02": time.Date(2027, time.February, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := usage.ParseMonth(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"2026-13", "2026-00", "2026", "2026-11-01", "11-2026", " 2026-11", "0000-01"} {
		if got, err := usage.ParseMonth(text, now); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if got := usage.MonthOf(time.Date(2026, time.December, 1, 1, 0, 0, 0, time.FixedZone("", 2*3600))); !got.Equal(november) {
		t.Error(got)
	}
}

// A month that is taken is written as it came.
func FuzzParseMonth(f *testing.F) {
	for _, text := range []string{"", "2026-11", "2026-13", "9999-12", "0001-01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		month, err := usage.ParseMonth(text, at(10, 0))
		if err != nil && !fault.Has(err, fault.ValidationError) {
			t.Error(err)
		}
		if err == nil && text != "" && usage.FormatMonth(month) != text {
			t.Errorf("%q became %s", text, month)
		}
	})
}

func TestPeriods(t *testing.T) {
	now := at(10, 30)
	for in, want := range map[[2]string]usage.Period{
		{"", ""}:                     {day(time.October, 31).Add(10 * time.Hour), now},
		{"2026-11-01", ""}:           {day(time.November, 1), now},
		{"2026-10-01", "2026-11-01"}: {day(time.October, 1), day(time.November, 1)},
		{"2026-11-30T08:15:00+02:00", "2026-11-30T07:00:00Z"}: {at(6, 0), at(7, 0)},
		{"", "2026-11-30T00:30:00Z"}:                          {day(time.October, 31), at(0, 30)},
	} {
		got, err := usage.ParsePeriod(in[0], in[1], usage.Hourly, now)
		if err != nil || !got.From.Equal(want.From) || !got.To.Equal(want.To) {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	for in, want := range map[[3]string]usage.Period{
		{"", "", "daily"}:                               {day(time.October, 31), now},
		{"", "", "monthly"}:                             {time.Date(2025, time.November, 1, 0, 0, 0, 0, time.UTC), now},
		{"2026-01-31", "", "monthly"}:                   {day(time.January, 1), now},
		{"2025-11-01", "2026-11-30T06:00:00Z", "daily"}: {time.Date(2025, time.November, 1, 0, 0, 0, 0, time.UTC), at(6, 0)},
	} {
		got, err := usage.ParsePeriod(in[0], in[1], usage.Resolution(in[2]), now)
		if err != nil || got != want {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	for _, by := range []usage.Resolution{usage.Daily, usage.Monthly} {
		if _, err := usage.ParsePeriod("2025-09-01", "2026-11-30", by, now); !fault.Has(err, fault.ValidationError) {
			t.Errorf("more than a year and a month, %s: %v", by, err)
		}
	}
	for in, field := range map[[2]string]string{
		{"yesterday", ""}: "from", {"", "soon"}: "to", {"2026-11-02", "2026-11-01"}: "to", {"2026-10-01", "2026-11-03"}: "to",
		{"2026-11-01", "2026-11-01"}: "to", {"2027-01-01", ""}: "to", {"0000-01-01", "0000-01-02"}: "to", {"", "10000-01-01"}: "to",
	} {
		_, err := usage.ParsePeriod(in[0], in[1], usage.Hourly, now)
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.ValidationError || e.Details[0].Field != field {
			t.Errorf("%q: %v, want %s", in, err, field)
		}
	}
}

// Whatever is accepted has a bounded number of hours.
func FuzzParsePeriod(f *testing.F) {
	for _, in := range [][2]string{
		{"", ""}, {"2026-11-01", "2026-11-02"}, {"2026-11-30T08:15:00+02:00", ""}, {"9999-12-31", "9999-12-31T23:59:60Z"},
	} {
		f.Add(in[0], in[1])
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		p, err := usage.ParsePeriod(from, to, usage.Hourly, at(10, 30))
		switch {
		case err != nil && !fault.Has(err, fault.ValidationError):
			t.Error(err)
		case err == nil && (!p.From.Before(p.To) || p.To.Sub(p.From) > usage.Longest+time.Hour):
			t.Errorf("%q, %q: %s", from, to, p)
		}
	})
}
