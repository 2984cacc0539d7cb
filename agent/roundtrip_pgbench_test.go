package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/database"
)

// pgbench is what the program of that name makes with -i -I dtgvpf -s 1 --partitions=3, and some of what it runs then.
const pgbench = `
	CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
	CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor = 100);
	CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) PARTITION BY RANGE (aid);
	CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor = 100);
	CREATE TABLE pgbench_accounts_1 PARTITION OF pgbench_accounts FOR VALUES FROM (MINVALUE) TO (33335) WITH (fillfactor = 100);
	CREATE TABLE pgbench_accounts_2 PARTITION OF pgbench_accounts FOR VALUES FROM (33335) TO (66669) WITH (fillfactor = 100);
	CREATE TABLE pgbench_accounts_3 PARTITION OF pgbench_accounts FOR VALUES FROM (66669) TO (MAXVALUE) WITH (fillfactor = 100);
	INSERT INTO pgbench_branches (bid, bbalance) VALUES (1, 0);
	INSERT INTO pgbench_tellers (tid, bid, tbalance) SELECT n, 1, 0 FROM generate_series(1, 10) n;
	INSERT INTO pgbench_accounts SELECT n, 1, 0, '' FROM generate_series(1, 100000) n;
	ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid);
	ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid);
	ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid);
	ALTER TABLE pgbench_tellers ADD CONSTRAINT pgbench_tellers_bid_fkey FOREIGN KEY (bid) REFERENCES pgbench_branches;
	ALTER TABLE pgbench_accounts ADD CONSTRAINT pgbench_accounts_bid_fkey FOREIGN KEY (bid) REFERENCES pgbench_branches;
	ALTER TABLE pgbench_history ADD CONSTRAINT pgbench_history_bid_fkey FOREIGN KEY (bid) REFERENCES pgbench_branches;
	ALTER TABLE pgbench_history ADD CONSTRAINT pgbench_history_tid_fkey FOREIGN KEY (tid) REFERENCES pgbench_tellers;
	ALTER TABLE pgbench_history ADD CONSTRAINT pgbench_history_aid_fkey FOREIGN KEY (aid) REFERENCES pgbench_accounts;
	DO $$ DECLARE account int; change int; BEGIN
		FOR n IN 1..2000 LOOP
			account := 1 + (n * 7919) % 100000; change := n % 5000 - 2500;
			UPDATE pgbench_accounts SET abalance = abalance + change WHERE aid = account;
			UPDATE pgbench_tellers SET tbalance = tbalance + change WHERE tid = 1 + n % 10;
			UPDATE pgbench_branches SET bbalance = bbalance + change WHERE bid = 1;
			INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1 + n % 10, 1, account, change, clock_timestamp());
		END LOOP;
	END $$`

func TestRoundTripOfPgbench(t *testing.T) {
	t.Parallel()
	s := realStack(t)
	w := s.made(t, database.SingleLogin)
	s.asOwner(t, w, pgbench)
	s.roundTrip(t, w)
}
