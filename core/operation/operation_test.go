package operation

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

var start = time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)

func TestMachineIsComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Statuses, Events)
}

// Nothing leaves a final status, and each step into one emits an event, exactly once.
func TestFinalIsFinal(t *testing.T) {
	for _, s := range Statuses {
		for e, cell := range Transitions[s] {
			if cell.Code != "" {
				continue
			}
			if s.Final() && cell.Next != s {
				t.Errorf("%s/%s leads to %s", s, e, cell.Next)
			}
			emits := len(cell.Effects) == 1 && cell.Effects[0] == EmitEvent
			if becomes := !s.Final() && cell.Next.Final(); emits != becomes {
				t.Errorf("%s/%s to %s: %v", s, e, cell.Next, cell.Effects)
			}
		}
	}
}

func TestDecideCancel(t *testing.T) {
	always := Spec{Cancelable: func(Operation) bool { return true }}
	early := Spec{Cancelable: func(o Operation) bool { return o.Stage == "early" }}
	cases := []struct {
		name  string
		spec  Spec
		stage string
		want  map[Status]Status // by the status in which it is asked for; elsewhere a conflict
	}{
		{"never while it runs", Spec{}, "early", map[Status]Status{Queued: Canceled, Canceled: Canceled}},
		{"always", always, "", map[Status]Status{Queued: Canceled, Canceled: Canceled, Running: Running}},
		{"early enough", early, "early", map[Status]Status{Queued: Canceled, Canceled: Canceled, Running: Running}},
		{"too late", early, "late", map[Status]Status{Queued: Canceled, Canceled: Canceled}},
	}
	for _, c := range cases {
		for _, s := range Statuses {
			status, err := c.spec.DecideCancel(Operation{Status: s, Stage: c.stage})
			want, allowed := c.want[s]
			if allowed && (err != nil || status != want) || !allowed && !fault.Has(err, fault.DatabaseStateConflict) {
				t.Errorf("%s, %s: %s, %v", c.name, s, status, err)
			}
		}
	}
}

func TestEnded(t *testing.T) {
	later, cause := start.Add(time.Minute), fault.New(fault.AgentError, "why")
	running := Operation{
		Status: Running, Stage: "clearing", Progress: 40, BytesDone: 1, BytesTotal: 2, Lease: Lease{Until: &later},
	}
	failing := running
	failing.ErrorCode, failing.ErrorText = cause.Code, cause.Message
	failed := Operation{Status: Failed, Progress: 40, ErrorCode: cause.Code, ErrorText: "why", Result: []byte("1")}
	cases := map[string]struct {
		o     Operation
		on    Event
		cause *fault.Error
		want  Operation
	}{
		"succeeded":           {running, Succeed, nil, Operation{Status: Succeeded, Progress: 100, Result: []byte("1")}},
		"succeeded after all": {failing, Succeed, nil, Operation{Status: Succeeded, Progress: 100, Result: []byte("1")}},
		"failed":              {running, Fail, cause, failed},
		"canceled":            {running, ConfirmCancel, nil, Operation{Status: Canceled, Progress: 40, Result: []byte("1")}},
	}
	for name, c := range cases {
		c.want.Stage, c.want.FinishedAt = StageFinished, &later
		if got, err := c.o.Ended(c.on, later, []byte("1"), c.cause); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := (Operation{Status: Queued}).Ended(Succeed, later, nil, nil); err == nil {
		t.Error("an operation that nobody claimed has succeeded")
	}
}

// Workers claim at any time. A claimed operation is never claimable before its lease ends, whoever asks, and each claim
// raises the epoch by one.
func TestLeaseExcludesOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, now := Operation{Status: Queued, Lease: Lease{NotBefore: start}}, start
		for range rapid.IntRange(1, 20).Draw(t, "claims") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "pause")))
			hold := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "hold"))
			if !o.Claimable(now) {
				continue
			}
			before := o
			o = o.Claimed("worker", now, hold)
			if o.Epoch != before.Epoch+1 || o.Attempts != before.Attempts+1 || o.Status != Running {
				t.Fatalf("%+v", o.Lease)
			}
			if before.StartedAt != nil && !o.StartedAt.Equal(*before.StartedAt) {
				t.Fatal("a second claim moved the start")
			}
			early := time.Duration(rapid.Int64Range(0, int64(hold)-1).Draw(t, "early"))
			if o.Claimable(now.Add(early)) {
				t.Fatalf("claimable %s into a lease of %s", early, hold)
			}
			if !o.Claimable(now.Add(hold)) {
				t.Fatalf("not claimable after a lease of %s", hold)
			}
		}
	})
}

func TestClaimable(t *testing.T) {
	later := start.Add(time.Minute)
	cases := map[string]struct {
		o    Operation
		want bool
	}{
		"new":              {Operation{Status: Queued}, true},
		"due now":          {Operation{Status: Queued, Lease: Lease{NotBefore: start}}, true},
		"resting":          {Operation{Status: Running, Lease: Lease{NotBefore: later}}, false},
		"put down, rested": {Operation{Status: Running}, true},
		"under a lease":    {Operation{Status: Running, Lease: Lease{Until: &later}}, false},
		"lease just over":  {Operation{Status: Running, Lease: Lease{Until: &start}}, true},
		"succeeded":        {Operation{Status: Succeeded}, false},
		"failed":           {Operation{Status: Failed}, false},
		"canceled":         {Operation{Status: Canceled}, false},
	}
	for name, v := range cases {
		if got := v.o.Claimable(start); got != v.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBackoff(t *testing.T) {
	for attempts, seconds := range map[int]int{
		-1: 1, 0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 32, 7: 60, 8: 60, 1 << 40: 60,
	} {
		if got := Backoff(attempts); got.Seconds() != float64(seconds) {
			t.Errorf("%d: %s", attempts, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int().Draw(t, "attempts")
		if d := Backoff(n); d < time.Second || d > time.Minute || n < 1<<60 && Backoff(n+1) < d {
			t.Fatal(n, d)
		}
	})
}

func TestFailure(t *testing.T) {
	if f := (Operation{Status: Succeeded}).Failure(); f != nil {
		t.Errorf("%+v", f)
	}
	f := Operation{Status: Failed, ErrorCode: fault.BackupNotVerified, ErrorText: "why"}.Failure()
	if f == nil || *f != (Failure{Code: fault.BackupNotVerified, Message: "why"}) {
		t.Errorf("%+v", f)
	}
}

func TestInputsComeBack(t *testing.T) {
	in := BackupInput{Filename: "20260105_093000.sql.gz", Trigger: "manual", Verify: true}
	if out, err := Decode[BackupInput](Encode(in)); err != nil || out != in {
		t.Errorf("%+v, %v", out, err)
	}
	action := LifecycleInput{Action: "stop", From: "active", Generation: 3}
	if out, err := Decode[LifecycleInput](Encode(action)); err != nil || out != action {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := Decode[BackupInput](nil); err == nil {
		t.Error("no input is read as an input")
	}
	result := string(Encode(BackupResult{Filename: "f", SizeBytes: 1, ChecksumSHA256: "c"}))
	if want := `{"filename":"f","sizeBytes":1,"checksumSha256":"c","verifiedAt":null}`; result != want {
		t.Error(result)
	}
}
