package main

import (
	"strings"
	"testing"
	"time"
)

// The report shows what failed in full, says of everything else how long it took, and names what
// was skipped.
func TestReport(t *testing.T) {
	const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"noise of a test that passes\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"m/a","Test":"TestAbsent","Output":"=== RUN   TestAbsent\n"}
{"Action":"output","Package":"m/a","Test":"TestAbsent","Output":"    a_test.go:7: data is absent\n"}
{"Action":"output","Package":"m/a","Test":"TestAbsent","Output":"--- SKIP: TestAbsent (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestAbsent","Elapsed":0}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.500s\n"}
{"Action":"pass","Package":"m/a","Elapsed":0.5}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:9: got 1 want 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad","Elapsed":0.2}
{"Action":"output","Package":"m/b","Test":"TestPanics","Output":"panic: oh\n"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t2.000s\n"}
{"Action":"fail","Package":"m/b","Elapsed":2}
{"Action":"build-output","ImportPath":"m/c","Output":"c.go:1: syntax error\n"}
{"Action":"fail","Package":"m/c","Elapsed":0,"FailedBuild":"m/c"}
no event
{"Action":"output","Package":"m/d","Output":"ok  \tm/d\t(cached)\n"}
{"Action":"pass","Package":"m/d","Elapsed":0}
`
	var out strings.Builder
	r := newTestReport(&out)
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r.summary(3 * time.Second)
	const want = `ok  	m/a	0.500s	1 skipped
    b_test.go:9: got 1 want 2
panic: oh
FAIL	m/b	2.000s
c.go:1: syntax error
FAIL	m/c
no event
ok  	m/d	(cached)

slowest packages:
     2.0s  m/b
     0.5s  m/a
     0.0s  m/c
     0.0s  m/d (cached)
skipped tests: 1
  m/a TestAbsent: a_test.go:7: data is absent
3 tests of 4 packages in 3s, 1 failed, 1 skipped

`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
