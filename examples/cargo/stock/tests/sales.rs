//! Two sales of the last item, along with scripts.

use heisen::script::*;
use stock::Stock;

fn two_sales() {
    let stock = Stock::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| stock.sell());
        scope.spawn(|| stock.sell());
    });
    assert_eq!(stock.left(), 0);
}

// One has seen that there is an item, and another buys it.
fn one_comes_between() {
    let [a, b] = wait_for_distinct_threads(enters("Stock::sell"));
    run_until(a, returns("Stock::left"));
    run_until(b, returns("Stock::sell"));
    run_until(a, ends());
}

#[heisen::test(script = one_comes_between)]
fn the_last_item() {
    two_sales();
}

// One after the other, in any order.
fn one_after_the_other() {
    let both: [Thread; 2] = wait_for_distinct_threads(enters("Stock::sell"));
    for thread in permute(both) {
        run_until(thread, ends());
    }
}

#[heisen::test(script = one_after_the_other)]
fn the_last_item_in_turn() {
    two_sales();
}
