package overlay
import ("testing";"os";"fmt";"time";"golang.org/x/sys/unix";"path/filepath";"sort")
func TestZZ(t *testing.T){
 d,_:=os.MkdirTemp("","stepbox-overlay-zz"); defer os.RemoveAll(d)
 buf:=make([]byte,4096); for i:=range buf{buf[i]=1}
 for i:=0;i<1000;i++{os.WriteFile(filepath.Join(d,fmt.Sprint(i)),buf,0644)}
 fd,_:=unix.Open(d,unix.O_RDONLY|unix.O_DIRECTORY,0)
 tm:=map[string]time.Duration{}
 st:=func(n string,f func()error){b:=time.Now(); if err:=f();err!=nil{t.Fatal(n,err)}; tm[n]+=time.Since(b)}
 for i:=0;i<1000;i++{
  var h int
  tmp:=fmt.Sprintf("tmp%d",i); n:=fmt.Sprint(i)
  st("create",func()error{var err error; h,err=unix.Openat(fd,tmp,unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL,0600);return err})
  st("write",func()error{_,err:=unix.Pwrite(h,buf,0);return err})
  st("chmod",func()error{return unix.Fchmod(h,0644)})
  st("utimes",func()error{return unix.UtimesNanoAt(h,"",[]unix.Timespec{{Nsec:unix.UTIME_OMIT},{Sec:5}},unix.AT_EMPTY_PATH)})
  st("close",func()error{return unix.Close(h)})
  st("exchange",func()error{return unix.Renameat2(fd,tmp,fd,n,unix.RENAME_EXCHANGE)})
  st("unlink",func()error{return unix.Unlinkat(fd,tmp,0)})
 }
 var k []string; for n:=range tm{k=append(k,n)}; sort.Strings(k)
 for _,n:=range k{fmt.Println(n,tm[n]/1000)}
}
